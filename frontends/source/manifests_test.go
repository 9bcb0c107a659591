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

	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// await waits until the objects are these, given as "kind ns/name=value".
func (r *recorder) await(t *testing.T, want ...string) {
	t.Helper()
	r.until(t, fmt.Sprint(want), func() bool {
		for _, w := range want {
			key, value, _ := strings.Cut(w, "=")
			if got, ok := r.objects[key]; !ok || got != value {
				return false
			}
		}
		return len(r.objects) == len(want) && r.synced == 1
	})
}

// until waits for a condition, which is called with the lock held.
func (r *recorder) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("objects are %v", r.objects)
		}
	}()
	aggregatortest.Eventually(t, what, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return ok()
	})
}

func (r *recorder) syncedNow() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.synced
}

// logged is a log that tests can wait for.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func newLog() (*logged, *slog.Logger) {
	l := &logged{}
	return l, slog.New(slog.NewTextHandler(l, nil))
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) await(t *testing.T, text string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Log(l.b.String())
		}
	}()
	aggregatortest.Eventually(t, text, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return strings.Contains(l.b.String(), text)
	})
}

// must ends the test with an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func manifest(name, ip string) string {
	return strings.NewReplacer("name: web", "name: "+name, "10.96.0.1", ip).Replace(goodService)
}

// write replaces a file as editors and ConfigMap updates do: by renaming.
func write(t *testing.T, dir, name, content string) {
	t.Helper()
	tmp := filepath.Join(dir, "."+name+".tmp")
	must(t, os.WriteFile(tmp, []byte(content), 0o644))
	must(t, os.Rename(tmp, filepath.Join(dir, name)))
}

// follow runs a source with a recorder of all kinds until the test ends.
func follow(t *testing.T, s Source) *recorder {
	t.Helper()
	r := newRecorder()
	subscribe(t, s, r)
	run(t, s)
	return r
}

// followFiles follows a directory of manifests.
func followFiles(t *testing.T, dir string) (*recorder, *logged) {
	t.Helper()
	log, logger := newLog()
	m, err := NewManifests(dir, logger)
	must(t, err)
	return follow(t, m), log
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
	must(t, s.Subscribe(r.subscription()))
}

func TestManifests(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", manifest("a", "10.96.0.1"))
	write(t, dir, "b.yaml", manifest("b", "10.96.0.2"))
	write(t, dir, "ignored.txt", "nonsense: [")
	write(t, dir, ".hidden.yaml", "nonsense: [")
	must(t, os.Mkdir(filepath.Join(dir, "dir.yaml"), 0o755))
	r, log := followFiles(t, dir)
	r.await(t, "Service default/a=10.96.0.1", "Service default/b=10.96.0.2")

	write(t, dir, "a.yaml", manifest("a", "10.96.0.3"))
	r.await(t, "Service default/a=10.96.0.3", "Service default/b=10.96.0.2")

	// A broken file keeps its last good state and stops no other.
	write(t, dir, "a.yaml", strings.Replace(manifest("a", "10.96.0.4"), "spec", "spce", 1))
	log.await(t, `a.yaml:5: unknown field \"spce\"`)
	write(t, dir, "b.yaml", manifest("b", "10.96.0.5"))
	r.await(t, "Service default/a=10.96.0.3", "Service default/b=10.96.0.5")
	must(t, os.WriteFile(filepath.Join(dir, "a.yaml"), nil, 0o644))
	log.await(t, "a.yaml: the file is empty")
	r.await(t, "Service default/a=10.96.0.3", "Service default/b=10.96.0.5")
	write(t, dir, "a.yaml", manifest("a", "10.96.0.6")+"---\n"+manifest("a2", "10.96.0.7"))
	log.await(t, "manifest is valid again")
	r.await(t, "Service default/a=10.96.0.6", "Service default/a2=10.96.0.7", "Service default/b=10.96.0.5")

	// An object that leaves its file goes, and so do all of a file that goes.
	write(t, dir, "a.yaml", manifest("a2", "10.96.0.7"))
	r.await(t, "Service default/a2=10.96.0.7", "Service default/b=10.96.0.5")
	must(t, os.Remove(filepath.Join(dir, "b.yaml")))
	r.await(t, "Service default/a2=10.96.0.7")
	// An object that moves to another file in one go never goes.
	write(t, dir, "c.yaml", manifest("a2", "10.96.0.7"))
	log.await(t, "object is in several manifests")
	must(t, os.Remove(filepath.Join(dir, "a.yaml")))
	log.await(t, "object is taken from another manifest now")
	r.await(t, "Service default/a2=10.96.0.7")
}

func TestManifestsDuplicates(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "b.yaml", manifest("a", "10.96.0.2"))
	r, log := followFiles(t, dir)
	r.await(t, "Service default/a=10.96.0.2")
	// The file whose name sorts first wins, whenever it came.
	write(t, dir, "a.yaml", manifest("a", "10.96.0.1"))
	r.await(t, "Service default/a=10.96.0.1")
	log.await(t, `object="Service default/a" file=a.yaml line=1 using=a.yaml files="a.yaml b.yaml"`)
	write(t, dir, "b.yaml", manifest("a", "10.96.0.3"))
	must(t, os.Remove(filepath.Join(dir, "a.yaml")))
	r.await(t, "Service default/a=10.96.0.3")
}

func TestManifestsSymlinks(t *testing.T) {
	// As kubelet mounts a ConfigMap: the files are links through ..data, which
	// is replaced as a whole.
	dir := t.TempDir()
	for i, ip := range []string{"10.96.0.1", "10.96.0.2"} {
		d := filepath.Join(dir, fmt.Sprintf("..v%d", i))
		must(t, os.Mkdir(d, 0o755))
		write(t, d, "a.yaml", manifest("a", ip))
	}
	link := func(to, name string) {
		t.Helper()
		must(t, os.Symlink(to, filepath.Join(dir, "..tmp")))
		must(t, os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, name)))
	}
	link("..v0", "..data")
	link("..data/a.yaml", "a.yaml")
	r, _ := followFiles(t, dir)
	r.await(t, "Service default/a=10.96.0.1")
	link("..v1", "..data")
	r.await(t, "Service default/a=10.96.0.2")
}

// TestManifestsOddFiles has files that are not manifests, with a manifest's name.
// None of it may hold up the source or take a good state away.
func TestManifestsOddFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", manifest("a", "10.96.0.1"))
	r, log := followFiles(t, dir)
	r.await(t, "Service default/a=10.96.0.1")
	path := func(name string) string { return filepath.Join(dir, name) }

	must(t, syscall.Mkfifo(path("fifo.yaml"), 0o600))
	log.await(t, "fifo.yaml: not a regular file")
	huge, err := os.Create(path("huge.yaml"))
	must(t, err)
	must(t, errors.Join(huge.Truncate(maxManifest+1), huge.Close()))
	log.await(t, "huge.yaml: the file is larger than 64 MiB")
	must(t, os.Symlink("loop.yaml", path("loop.yaml")))
	log.await(t, "loop.yaml: ")

	// A file that becomes a link to nowhere keeps its last good state, and
	// counts again when it is what it was.
	must(t, os.Rename(path("a.yaml"), path("a.kept")))
	r.await(t)
	must(t, os.Symlink("a.kept", path("a.yaml")))
	r.await(t, "Service default/a=10.96.0.1")
	must(t, os.Rename(path("a.kept"), path("a.away")))
	log.await(t, "a.yaml: the target of the symbolic link does not exist")
	r.await(t, "Service default/a=10.96.0.1")
	must(t, os.Rename(path("a.away"), path("a.kept")))
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
		must(t, m.scan())
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
	must(t, os.Rename(filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml")))
	if got := scan(); got != "0" {
		t.Errorf("renamed file: %s events", got)
	}
	must(t, os.Remove(filepath.Join(dir, "b.yaml")))
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
	const valid = "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}]}}"
	write(t, dir, "a.yaml", "kind: [")
	write(t, dir, "b.yaml", "kind: [")
	write(t, dir, "c.yaml", valid)
	m, err := NewManifests(dir, nil)
	must(t, err)
	r := newRecorder()
	s := r.subscription()
	var got []string
	s.Unread = func(files []string) { got = append(got, fmt.Sprintf("%v %d", files, r.syncedNow())) }
	must(t, m.Subscribe(s))
	scan := func() {
		t.Helper()
		must(t, m.scan())
	}
	scan()
	write(t, dir, "c.yaml", "kind: [[")
	write(t, dir, "d.yaml", "kind: [")
	scan()
	write(t, dir, "a.yaml", valid)
	scan()
	write(t, dir, "a.yaml", "kind: [[[")
	must(t, os.Remove(filepath.Join(dir, "b.yaml")))
	scan()
	if want := "[[a.yaml b.yaml] 0 [b.yaml] 0 [] 0]"; fmt.Sprint(got) != want {
		t.Errorf("unread manifests %v, want %s", got, want)
	}
}
