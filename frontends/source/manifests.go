package source

import (
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
)

const (
	// settle is how long a directory must have been quiet before it is read: a
	// file that is written in steps is read once.
	settle = 50 * time.Millisecond
	// maxSettle bounds that time when the directory never is.
	maxSettle = 500 * time.Millisecond
	// poll is how often the directory is looked at without being told: for
	// file systems that do not tell, and for the directory's own replacement.
	poll = 5 * time.Second
)

// Manifests is a directory of YAML or JSON files as a source: *.yaml, *.yml and
// *.json, not those whose name begins with a dot, and not subdirectories.
type Manifests struct {
	dir string
	log *slog.Logger

	files map[string]*file
	// owners are the files that have an object, sorted: the first one's counts.
	owners map[identity][]string
}

// file is a manifest file in its last good state.
type file struct {
	stamp stamp
	// objects of the last good state.
	objects map[identity]object
	// broken is what is wrong now, empty if nothing.
	broken string
	// seen marks files during a scan.
	seen bool
}

// stamp tells whether a file may have changed since it was read.
type stamp struct {
	modified time.Time
	size     int64
	info     os.FileInfo
}

func (s stamp) same(o stamp) bool {
	return s.size == o.size && s.modified.Equal(o.modified) && s.info != nil && o.info != nil && os.SameFile(s.info, o.info)
}

// NewManifests returns a source. A nil logger discards. It does no I/O.
func NewManifests(dir string, log *slog.Logger) (*Manifests, error) {
	if dir == "" {
		return nil, errors.New("configure manifests: no directory")
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Manifests{dir: dir, log: log, files: make(map[string]*file), owners: make(map[identity][]string)}, nil
}

// Run implements Source. It fails if the directory can not be read at the start;
// later everything that it delivered stays until the directory is back.
func (m *Manifests) Run(ctx context.Context, deliver func([]Event)) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch manifests in %s: %w", m.dir, err)
	}
	defer w.Close()
	// First the watch, then the scan: nothing is missed between them.
	if err := w.Add(m.dir); err != nil {
		return fmt.Errorf("watch manifests in %s: %w", m.dir, err)
	}
	events, err := m.scan()
	if err != nil {
		return fmt.Errorf("read manifests in %s: %w", m.dir, err)
	}
	m.log.Info("following manifests", "directory", m.dir, "files", len(m.files), "objects", len(m.owners))
	deliver(append(events, Synced{}))
	m.watch(ctx, w, deliver)
	return nil
}

// watch scans whenever the directory has changed and come to rest.
func (m *Manifests) watch(ctx context.Context, w *fsnotify.Watcher, deliver func([]Event)) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	rest := time.NewTimer(time.Hour)
	rest.Stop()
	var first time.Time
	stir := func() {
		now := time.Now()
		if first.IsZero() {
			first = now
		}
		rest.Reset(min(settle, max(0, time.Until(first.Add(maxSettle)))))
	}
	lost := false
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-w.Events:
			if !ok {
				return
			}
			stir()
			continue
		case err := <-w.Errors:
			// An overflow loses events: look at everything.
			m.log.Warn("watch of the manifests failed: reading them again", "directory", m.dir, "error", err)
			stir()
			continue
		case <-rest.C:
			first = time.Time{}
		case <-tick.C:
			// A directory that was replaced has to be watched anew; for one
			// that is still watched this does nothing.
			if err := w.Add(m.dir); err != nil && !lost {
				m.log.Error("the manifests can not be watched: keeping the last state", "directory", m.dir, "error", err)
			}
		}
		events, err := m.scan()
		switch {
		case err != nil && !lost:
			m.log.Error("the manifests can not be read: keeping the last state", "directory", m.dir, "error", err)
		case err == nil && lost:
			m.log.Info("the manifests can be read again", "directory", m.dir)
		}
		lost = err != nil
		if len(events) > 0 {
			deliver(events)
		}
	}
}

// scan reads what has changed in the directory and returns what that means. An
// error means that the directory itself can not be read.
func (m *Manifests) scan() ([]Event, error) {
	entries, err := os.ReadDir(m.dir)
	if err != nil {
		return nil, err
	}
	for _, f := range m.files {
		f.seen = false
	}
	before := make(map[identity]*object)
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
	events := m.events(before)
	m.orphans(events)
	return events, nil
}

// visit reads one file if it has changed. Objects that it had or has now go to
// before, in the form that counted until now.
func (m *Manifests) visit(name string, before map[identity]*object) {
	path := filepath.Join(m.dir, name)
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return
	}
	f := m.files[name]
	if errors.Is(err, fs.ErrNotExist) {
		if _, lerr := os.Lstat(path); lerr != nil {
			// Gone since the directory was read.
			return
		}
		err = errors.New("the link leads to a file that is not there")
	}
	if f == nil {
		f = &file{}
		m.files[name] = f
	}
	f.seen = true
	if err != nil {
		m.broken(f, &FileError{File: name, Err: err})
		f.stamp = stamp{}
		return
	}
	now := stamp{modified: info.ModTime(), size: info.Size(), info: info}
	if now.same(f.stamp) {
		return
	}
	content, err := read(path)
	if err != nil {
		m.broken(f, &FileError{File: name, Err: err})
		// It may come back as it was, which has to be seen as well.
		f.stamp = stamp{}
		return
	}
	f.stamp = now
	objects, other, err := decode(name, content)
	if err != nil {
		m.broken(f, err)
		return
	}
	if f.broken != "" {
		f.broken = ""
		m.log.Info("manifest is good again", "file", name)
	}
	for _, s := range other {
		m.log.Info("manifest has an object of another kind: ignored", "file", name, "line", s.line, "kind", s.kind)
	}
	m.replace(name, f, objects, before)
}

// read returns a file's content, within bounds. What is not a regular file is
// an error: a pipe would hold up the source until somebody writes to it.
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

// broken reports what is wrong with a file, once; its last good state stays.
func (m *Manifests) broken(f *file, err error) {
	if f.broken == err.Error() {
		return
	}
	f.broken = err.Error()
	for line := range strings.Lines(f.broken) {
		m.log.Error("manifest is broken: keeping its last good state", "error", strings.TrimSuffix(line, "\n"), "kept", len(f.objects))
	}
}

// replace makes objects those of a file.
func (m *Manifests) replace(name string, f *file, objects []object, before map[identity]*object) {
	now := make(map[identity]object, len(objects))
	for _, o := range objects {
		now[o.id] = o
	}
	for id := range f.objects {
		m.remember(id, before)
		if _, still := now[id]; !still {
			m.disown(id, name)
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
			m.log.Error("object is in several manifests: that of the file whose name sorts first counts", "object", o.id.String(),
				"file", name, "line", o.line, "counts", all[0], "files", strings.Join(all, " "))
		}
	}
	f.objects = now
}

// remember notes the form of an object that counted before this scan.
func (m *Manifests) remember(id identity, before map[identity]*object) {
	if _, noted := before[id]; !noted {
		before[id] = m.current(id)
	}
}

// current returns the form of an object that counts, nil if there is none.
func (m *Manifests) current(id identity) *object {
	all := m.owners[id]
	if len(all) == 0 {
		return nil
	}
	o, ok := m.files[all[0]].objects[id]
	if !ok {
		return nil
	}
	return &o
}

func (m *Manifests) disown(id identity, name string) {
	all := slices.DeleteFunc(m.owners[id], func(n string) bool { return n == name })
	if len(all) == 0 {
		delete(m.owners, id)
		return
	}
	m.owners[id] = all
	m.log.Info("object comes from another manifest now", "object", id.String(), "file", all[0])
}

// events compares the forms that counted before with those that count now.
// Sorted by kind and name: endpoints come before the Services that use them.
func (m *Manifests) events(before map[identity]*object) []Event {
	ids := slices.SortedFunc(maps.Keys(before), func(a, b identity) int { return strings.Compare(a.String(), b.String()) })
	var out []Event
	for _, id := range ids {
		was, now := before[id], m.current(id)
		switch {
		case now == nil && was != nil:
			out = append(out, was.gone)
		case now != nil && (was == nil || was.text != now.text):
			out = append(out, now.set)
		}
	}
	return out
}
