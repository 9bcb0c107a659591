package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// await waits until the objects are these, given as "kind ns/name=value".
func (r *recorder) await(t *testing.T, want ...string) {
	t.Helper()
	deadline := time.After(3 * time.Minute)
	for {
		r.mu.Lock()
		got := make(map[string]bool)
		for k, v := range r.objects {
			got[k+"="+v] = true
		}
		synced := r.synced
		r.mu.Unlock()
		ok := len(got) == len(want) && synced == 1
		for _, w := range want {
			ok = ok && got[w]
		}
		if ok {
			return
		}
		select {
		case <-r.changed:
		case <-deadline:
			t.Fatalf("objects are %v (synced %d times), want %v", got, synced, want)
		}
	}
}

// until waits for a condition, which is called with the lock held.
func (r *recorder) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(3 * time.Minute)
	for {
		r.mu.Lock()
		done := ok()
		r.mu.Unlock()
		if done {
			return
		}
		select {
		case <-r.changed:
		case <-deadline:
			t.Fatalf("waited in vain for %s: objects are %v", what, r.objects)
		}
	}
}

func (r *recorder) syncedNow() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.synced
}

// logged is a log that tests can wait for.
type logged struct {
	mu      sync.Mutex
	b       bytes.Buffer
	changed chan struct{}
}

func newLog() (*logged, *slog.Logger) {
	l := &logged{changed: make(chan struct{}, 1)}
	return l, slog.New(slog.NewTextHandler(l, nil))
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
	return l.b.Write(p)
}

func (l *logged) await(t *testing.T, text string) {
	t.Helper()
	deadline := time.After(3 * time.Minute)
	for {
		l.mu.Lock()
		got := l.b.String()
		l.mu.Unlock()
		if strings.Contains(got, text) {
			return
		}
		select {
		case <-l.changed:
		case <-deadline:
			t.Fatalf("nothing logged %q, but\n%s", text, got)
		}
	}
}

func manifest(name, ip string) string {
	return strings.NewReplacer("name: web", "name: "+name, "10.96.0.1", ip).Replace(goodService)
}

// write replaces a file as editors and ConfigMap updates do: by renaming.
func write(t *testing.T, dir, name, content string) {
	t.Helper()
	tmp := filepath.Join(dir, "."+name+".tmp")
	if err := os.WriteFile(tmp, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(tmp, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

// follow runs a source until the test ends.
func follow(t *testing.T, s Source, r *recorder) {
	t.Helper()
	subscribe(t, s, r)
	run(t, s)
}

// run runs a source with the users that it has until the test ends.
func run(t *testing.T, s Source) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
}

// subscribe adds a recorder with all kinds to a source.
func subscribe(t testing.TB, s Source, r *recorder) {
	t.Helper()
	if err := s.Subscribe(r.subscription()); err != nil {
		t.Fatal(err)
	}
}

func TestManifests(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", manifest("a", "10.96.0.1"))
	write(t, dir, "b.yaml", manifest("b", "10.96.0.2"))
	write(t, dir, "ignored.txt", "nonsense: [")
	write(t, dir, ".hidden.yaml", "nonsense: [")
	if err := os.Mkdir(filepath.Join(dir, "dir.yaml"), 0o755); err != nil {
		t.Fatal(err)
	}
	log, logger := newLog()
	m, err := NewManifests(dir, logger)
	if err != nil {
		t.Fatal(err)
	}
	r := newRecorder()
	follow(t, m, r)
	r.await(t, "Service default/a=10.96.0.1", "Service default/b=10.96.0.2")

	write(t, dir, "a.yaml", manifest("a", "10.96.0.3"))
	r.await(t, "Service default/a=10.96.0.3", "Service default/b=10.96.0.2")

	// A broken file keeps its last good state and stops no other.
	write(t, dir, "a.yaml", strings.Replace(manifest("a", "10.96.0.4"), "spec", "spce", 1))
	log.await(t, `a.yaml:5: unknown field \"spce\"`)
	write(t, dir, "b.yaml", manifest("b", "10.96.0.5"))
	r.await(t, "Service default/a=10.96.0.3", "Service default/b=10.96.0.5")
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	log.await(t, "a.yaml: the file is empty")
	r.await(t, "Service default/a=10.96.0.3", "Service default/b=10.96.0.5")
	write(t, dir, "a.yaml", manifest("a", "10.96.0.6")+"---\n"+manifest("a2", "10.96.0.7"))
	log.await(t, "manifest is valid again")
	r.await(t, "Service default/a=10.96.0.6", "Service default/a2=10.96.0.7", "Service default/b=10.96.0.5")

	// An object that leaves its file goes, and so do all of a file that goes.
	write(t, dir, "a.yaml", manifest("a2", "10.96.0.7"))
	r.await(t, "Service default/a2=10.96.0.7", "Service default/b=10.96.0.5")
	if err := os.Remove(filepath.Join(dir, "b.yaml")); err != nil {
		t.Fatal(err)
	}
	r.await(t, "Service default/a2=10.96.0.7")
	// An object that moves to another file in one go never goes.
	write(t, dir, "c.yaml", manifest("a2", "10.96.0.7"))
	log.await(t, "object is in several manifests")
	if err := os.Remove(filepath.Join(dir, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	log.await(t, "object is taken from another manifest now")
	r.await(t, "Service default/a2=10.96.0.7")
}

func TestManifestsDuplicates(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "b.yaml", manifest("a", "10.96.0.2"))
	log, logger := newLog()
	m, _ := NewManifests(dir, logger)
	r := newRecorder()
	follow(t, m, r)
	r.await(t, "Service default/a=10.96.0.2")
	// The file whose name sorts first wins, whenever it came.
	write(t, dir, "a.yaml", manifest("a", "10.96.0.1"))
	r.await(t, "Service default/a=10.96.0.1")
	log.await(t, `object="Service default/a" file=a.yaml line=1 using=a.yaml files="a.yaml b.yaml"`)
	write(t, dir, "b.yaml", manifest("a", "10.96.0.3"))
	if err := os.Remove(filepath.Join(dir, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	r.await(t, "Service default/a=10.96.0.3")
}

func TestManifestsSymlinks(t *testing.T) {
	// As kubelet mounts a ConfigMap: the files are links through ..data, which
	// is replaced as a whole.
	dir := t.TempDir()
	for i, ip := range []string{"10.96.0.1", "10.96.0.2"} {
		d := filepath.Join(dir, fmt.Sprintf("..v%d", i))
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, d, "a.yaml", manifest("a", ip))
	}
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(dir, "..tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("..v0", "..data")
	link("..data/a.yaml", "a.yaml")
	m, _ := NewManifests(dir, nil)
	r := newRecorder()
	follow(t, m, r)
	r.await(t, "Service default/a=10.96.0.1")
	link("..v1", "..data")
	r.await(t, "Service default/a=10.96.0.2")
}

// TestManifestsOddFiles has files that are not manifests, with a manifest's name.
// None of it may hold up the source or take a good state away.
func TestManifestsOddFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", manifest("a", "10.96.0.1"))
	log, logger := newLog()
	m, _ := NewManifests(dir, logger)
	r := newRecorder()
	follow(t, m, r)
	r.await(t, "Service default/a=10.96.0.1")
	path := func(name string) string { return filepath.Join(dir, name) }

	if err := syscall.Mkfifo(path("fifo.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	log.await(t, "fifo.yaml: not a regular file")
	huge, err := os.Create(path("huge.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(huge.Truncate(maxManifest+1), huge.Close()); err != nil {
		t.Fatal(err)
	}
	log.await(t, "huge.yaml: the file is larger than 64 MiB")
	if err := os.Symlink("loop.yaml", path("loop.yaml")); err != nil {
		t.Fatal(err)
	}
	log.await(t, "loop.yaml: ")

	// A file that becomes a link to nowhere keeps its last good state, and
	// counts again when it is what it was.
	if err := os.Rename(path("a.yaml"), path("a.kept")); err != nil {
		t.Fatal(err)
	}
	r.await(t)
	if err := os.Symlink("a.kept", path("a.yaml")); err != nil {
		t.Fatal(err)
	}
	r.await(t, "Service default/a=10.96.0.1")
	if err := os.Rename(path("a.kept"), path("a.away")); err != nil {
		t.Fatal(err)
	}
	log.await(t, "a.yaml: the target of the symbolic link does not exist")
	r.await(t, "Service default/a=10.96.0.1")
	if err := os.Rename(path("a.away"), path("a.kept")); err != nil {
		t.Fatal(err)
	}
	log.await(t, `"manifest is valid again" file=a.yaml`)
	write(t, dir, "b.yaml", manifest("b", "10.96.0.2"))
	r.await(t, "Service default/a=10.96.0.1", "Service default/b=10.96.0.2")
}

func TestManifestsWithoutDirectory(t *testing.T) {
	m, _ := NewManifests(filepath.Join(t.TempDir(), "missing"), nil)
	if err := m.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("error %v, want one that names the directory", err)
	}
	if _, err := NewManifests("", nil); err == nil {
		t.Error("no error for an empty name")
	}
}

// TestManifestsScan checks the events of a scan without the clock.
func TestManifestsScan(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", manifest("a", "10.96.0.1"))
	m, _ := NewManifests(dir, nil)
	r := newRecorder()
	subscribe(t, m, r)
	scan := func() string {
		t.Helper()
		before := r.batches
		if err := m.scan(); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(r.batches - before)
	}
	if got := scan(); got != "1" {
		t.Errorf("first scan: %s events", got)
	}
	if got := scan(); got != "0" {
		t.Errorf("second scan: %s events", got)
	}
	// The same content under a new time stamp is not an event.
	write(t, dir, "a.yaml", manifest("a", "10.96.0.1"))
	if got := scan(); got != "0" {
		t.Errorf("rewritten file: %s events", got)
	}
	if err := os.Rename(filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml")); err != nil {
		t.Fatal(err)
	}
	if got := scan(); got != "0" {
		t.Errorf("renamed file: %s events", got)
	}
	if err := os.Remove(filepath.Join(dir, "b.yaml")); err != nil {
		t.Fatal(err)
	}
	if got := scan(); got != "1" || r.gone != 1 || len(r.objects) != 0 {
		t.Errorf("removed file: %s batches, %d deleted, left %v", got, r.gone, r.objects)
	}
	if len(m.files) != 0 || len(m.owners) != 0 {
		t.Errorf("left over: %v %v", m.files, m.owners)
	}
}

// TestManifestsUnread names the manifests of the start that have never been valid.
func TestManifestsUnread(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const valid = "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}]}}"
	write("a.yaml", "kind: [")
	write("b.yaml", "kind: [")
	write("c.yaml", valid)
	m, err := NewManifests(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := newRecorder()
	s := r.subscription()
	var got []string
	s.Unread = func(files []string) {
		got = append(got, fmt.Sprintf("%v %d", files, r.syncedNow()))
	}
	if err := m.Subscribe(s); err != nil {
		t.Fatal(err)
	}
	scan := func() {
		t.Helper()
		if err := m.scan(); err != nil {
			t.Fatal(err)
		}
	}
	scan()
	write("c.yaml", "kind: [[")
	write("d.yaml", "kind: [")
	scan()
	write("a.yaml", valid)
	scan()
	write("a.yaml", "kind: [[[")
	if err := os.Remove(filepath.Join(dir, "b.yaml")); err != nil {
		t.Fatal(err)
	}
	scan()
	if want := "[[a.yaml b.yaml] 0 [b.yaml] 0 [] 0]"; fmt.Sprint(got) != want {
		t.Errorf("unread manifests %v, want %s", got, want)
	}
}
