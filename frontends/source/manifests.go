package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// A read waits until the directory is unchanged for quietTime, but at most maxQuietTime.
	quietTime    = 50 * time.Millisecond
	maxQuietTime = 500 * time.Millisecond
	// Some file systems send no notifications, and the directory may be replaced.
	poll = 5 * time.Second
	// while notifications are unavailable
	pollUnwatched = time.Second
)

// Manifests is a directory of *.yaml, *.yml and *.json files as a Source, without subdirectories and names
// beginning with a dot.
type Manifests struct {
	dir   string
	log   *slog.Logger
	users []*user
	kinds map[schema.GroupVersionKind][]*kind

	files map[string]*file
	// files with an object, sorted; the first one is in force
	owners  map[identity][]string
	unread  []string
	started bool
	// nil without notifications
	watcher *fsnotify.Watcher
}

type file struct {
	// of the state that was read; nil if reading failed
	info    os.FileInfo
	objects map[identity]object
	// the logged error, or empty
	invalid string
	// never valid since the start
	unread bool
	// by the present scan
	seen bool
}

func unchanged(read, now os.FileInfo) bool {
	return read != nil && read.Size() == now.Size() && read.ModTime().Equal(now.ModTime()) && os.SameFile(read, now)
}

// NewManifests returns a source without doing I/O. A nil logger discards.
func NewManifests(dir string, log *slog.Logger) (*Manifests, error) {
	if dir == "" {
		return nil, errors.New("configure manifests: no directory")
	}
	return &Manifests{
		dir: dir, log: cmp.Or(log, slog.New(slog.DiscardHandler)), kinds: make(map[schema.GroupVersionKind][]*kind), files: make(map[string]*file), owners: make(map[identity][]string),
	}, nil
}

// Subscribe implements Source.
func (m *Manifests) Subscribe(s Subscription) error {
	u, err := newUser(s)
	if err != nil {
		return err
	}
	m.users = append(m.users, u)
	for _, k := range u.kinds {
		m.kinds[k.gvk] = append(m.kinds[k.gvk], k)
	}
	return nil
}

// Run implements Source. It fails if the directory is unreadable at the start; later it keeps delivered
// objects.
func (m *Manifests) Run(ctx context.Context) error {
	// Watch before the scan to miss no change.
	notified := m.notify()
	defer m.close()
	if err := m.scan(); err != nil {
		return fmt.Errorf("read manifests in %s: %w", m.dir, err)
	}
	m.log.Info("following manifests", "directory", m.dir, "files", len(m.files), "objects", len(m.owners))
	for _, u := range m.users {
		u.synced()
	}
	m.watch(ctx, notified)
	return nil
}

func (m *Manifests) notify() error {
	if m.watcher == nil {
		w, err := fsnotify.NewWatcher()
		if err != nil {
			return err
		}
		m.watcher = w
	}
	err := m.watcher.Add(m.dir)
	if err != nil {
		m.close()
	}
	return err
}

func (m *Manifests) close() {
	if m.watcher != nil {
		_ = m.watcher.Close()
		m.watcher = nil
	}
}

// every returns the interval of reads, and logs a change. was and err are notify's last and present result.
func (m *Manifests) every(was, err error) time.Duration {
	remedy := ""
	switch {
	case err == nil && was == nil:
		return poll
	case err == nil:
		m.log.Info("the manifests are watched now", "directory", m.dir)
		return poll
	case was != nil || errors.Is(err, fs.ErrNotExist):
		return pollUnwatched
	case errors.Is(err, syscall.EMFILE):
		remedy = "raise the sysctl fs.inotify.max_user_instances: other programs use all instances"
	case errors.Is(err, syscall.ENOSPC):
		remedy = "raise the sysctl fs.inotify.max_user_watches: other programs use all watches"
	}
	m.log.Warn("cannot watch the manifests: reading them every second", "directory", m.dir, "error", err, "remedy", remedy)
	return pollUnwatched
}

func (m *Manifests) watch(ctx context.Context, notified error) {
	tick := time.NewTicker(m.every(nil, notified))
	defer tick.Stop()
	quiet := time.NewTimer(time.Hour)
	quiet.Stop()
	var first time.Time
	changed := func() {
		now := time.Now()
		if first.IsZero() {
			first = now
		}
		quiet.Reset(min(quietTime, max(0, time.Until(first.Add(maxQuietTime)))))
	}
	lost := false
	for {
		var events <-chan fsnotify.Event
		var failures <-chan error
		if m.watcher != nil {
			events, failures = m.watcher.Events, m.watcher.Errors
		}
		select {
		case <-ctx.Done():
			return
		case <-events:
			changed()
			continue
		case err := <-failures:
			// An overflow loses notifications.
			m.log.Warn("watch of the manifests failed: reading all of them again", "directory", m.dir, "error", err)
			changed()
			continue
		case <-quiet.C:
			first = time.Time{}
		case <-tick.C:
			// A replaced directory needs a new watch.
			was := notified
			notified = m.notify()
			tick.Reset(m.every(was, notified))
		}
		err := m.scan()
		switch {
		case err != nil && !lost:
			m.log.Error("cannot read the manifests: keeping the last state", "directory", m.dir, "error", err)
		case err == nil && lost:
			m.log.Info("the manifests can be read again", "directory", m.dir)
		}
		lost = err != nil
	}
}

// scan fails if the directory is unreadable.
func (m *Manifests) scan() error {
	entries, err := os.ReadDir(m.dir)
	if err != nil {
		return err
	}
	for _, f := range m.files {
		f.seen = false
	}
	before := make(map[identity]object)
	for _, e := range entries {
		name := e.Name()
		switch filepath.Ext(name) {
		case ".yaml", ".yml", ".json":
		default:
			continue
		}
		if !strings.HasPrefix(name, ".") {
			m.visit(name, before)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.files)) {
		if f := m.files[name]; !f.seen {
			m.replace(name, f, nil, before)
			delete(m.files, name)
			m.log.Info("manifest is gone", "file", name)
		}
	}
	m.deliver(before)
	m.reportUnread()
	m.started = true
	return nil
}

func (m *Manifests) reportUnread() {
	var unread []string
	for name, f := range m.files {
		if f.unread {
			unread = append(unread, name)
		}
	}
	slices.Sort(unread)
	if slices.Equal(unread, m.unread) {
		return
	}
	m.unread = unread
	for _, u := range m.users {
		u.reportUnread(unread)
	}
}

// before receives the previous forms of the file's objects.
func (m *Manifests) visit(name string, before map[identity]object) {
	path := filepath.Join(m.dir, name)
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return
	}
	f := m.files[name]
	if errors.Is(err, fs.ErrNotExist) {
		if _, lerr := os.Lstat(path); lerr != nil {
			return
		}
		err = errors.New("the target of the symbolic link does not exist")
	}
	if f == nil {
		f = &file{unread: !m.started}
		m.files[name] = f
	}
	f.seen = true
	var content []byte
	if err == nil {
		if unchanged(f.info, info) {
			return
		}
		content, err = read(path)
	}
	if err != nil {
		m.setInvalid(f, &FileError{File: name, Err: err})
		f.info = nil
		return
	}
	f.info = info
	objects, other, err := decode(name, content, m.kinds)
	if err != nil {
		m.setInvalid(f, err)
		return
	}
	f.unread = false
	if f.invalid != "" {
		f.invalid = ""
		m.log.Info("manifest is valid again", "file", name)
	}
	for _, s := range other {
		m.log.Info("manifest has an object of another kind: ignored", "file", name, "line", s.line, "kind", s.kind)
	}
	m.replace(name, f, objects, before)
}

// Reading a pipe would block.
func read(path string) ([]byte, error) {
	r, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // the operator's directory
	if err != nil {
		return nil, err
	}
	defer r.Close()
	info, err := r.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	case info.Size() > maxManifest:
		return nil, errTooLarge
	}
	content, err := io.ReadAll(io.LimitReader(r, maxManifest+1))
	if err == nil && len(content) > maxManifest {
		err = errTooLarge
	}
	return content, err
}

var errTooLarge = fmt.Errorf("the file is larger than %d MiB", maxManifest>>20)

func (m *Manifests) setInvalid(f *file, err error) {
	if f.invalid == err.Error() {
		return
	}
	f.invalid = err.Error()
	for line := range strings.Lines(f.invalid) {
		m.log.Error("manifest is invalid: keeping its last valid state", "error", strings.TrimSuffix(line, "\n"), "kept", len(f.objects))
	}
}

func (m *Manifests) replace(name string, f *file, objects []object, before map[identity]object) {
	now := make(map[identity]object, len(objects))
	for _, o := range objects {
		now[o.id] = o
	}
	for id := range f.objects {
		m.remember(id, before)
		if _, still := now[id]; !still {
			m.removeOwner(id, name)
		}
	}
	for _, o := range objects {
		m.remember(o.id, before)
		if _, had := f.objects[o.id]; had {
			continue
		}
		all := m.owners[o.id]
		at, _ := slices.BinarySearch(all, name)
		all = slices.Insert(all, at, name)
		m.owners[o.id] = all
		if len(all) > 1 {
			m.log.Error("object is in several manifests: using the first file in the order of names", "object", o.id.String(),
				"file", name, "line", o.line, "using", all[0], "files", strings.Join(all, " "))
		}
	}
	f.objects = now
}

func (m *Manifests) remember(id identity, before map[identity]object) {
	if _, noted := before[id]; !noted {
		before[id] = m.current(id)
	}
}

func (m *Manifests) current(id identity) object {
	if all := m.owners[id]; len(all) > 0 {
		return m.files[all[0]].objects[id]
	}
	return object{}
}

func (m *Manifests) removeOwner(id identity, name string) {
	all := slices.DeleteFunc(m.owners[id], func(n string) bool { return n == name })
	if len(all) == 0 {
		delete(m.owners, id)
		return
	}
	m.owners[id] = all
	m.log.Info("object is taken from another manifest now", "object", id.String(), "file", all[0])
}

// deliver delivers the changes since before, by kind and name: EndpointSlices precede Services.
func (m *Manifests) deliver(before map[identity]object) {
	ids := slices.SortedFunc(maps.Keys(before), func(a, b identity) int { return strings.Compare(a.String(), b.String()) })
	events := make([][]Event, len(m.users))
	for _, id := range ids {
		was, is := before[id], m.current(id)
		if is.object != nil {
			if was.text == is.text {
				continue
			}
			m.warnOrphan(&is)
		}
		for i, u := range m.users {
			after := is.object
			if after != nil {
				after = after.DeepCopyObject().(Object) //nolint:forcetypeassert // a copy of one
			}
			events[i] = append(events[i], u.change(was.object, after)...)
		}
	}
	for i, u := range m.users {
		u.deliver(events[i])
	}
}

// An object without its owner is delivered, because the owner may appear.
func (m *Manifests) warnOrphan(o *object) {
	for _, k := range m.kinds[o.gvk] {
		if k.owner == nil {
			continue
		}
		owner := k.owner(o.object)
		id := identity{kind: owner.GroupKind, namespace: owner.Name.Namespace, name: owner.Name.Name}
		log := m.log.With("object", o.id.String(), "file", m.owners[o.id][0], "line", o.line)
		switch {
		case owner.Missing != "":
			log.Warn("object has no effect: " + owner.Missing)
		case len(m.owners[id]) == 0:
			log.Warn("object has no effect until its owner appears in a manifest", "owner", id.String())
		}
		return
	}
}
