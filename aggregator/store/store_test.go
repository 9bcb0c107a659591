package store

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
)

// TestSumsAreRight makes random changes of nested buckets: after each start all is there.
func TestSumsAreRight(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	w := load(t, dir)
	name := func() string { return string(rune('a' + rnd.IntN(3))) }
	for range 30 {
		must(t, w.Update(func(tx *Tx) error {
			for range 10 {
				b, err := obtain(tx, "whole/"+name()+"/"+name())
				if err != nil {
					return err
				}
				parent := b.parent
				switch rnd.IntN(6) {
				case 0:
					err = parent.DeleteBucket(name())
				case 1:
					err = parent.Put(name(), nil)
				case 2:
					to, _ := obtain(tx, "whole/moved")
					from := string(b.name)
					if to.Bucket(from) == nil && b.stats == b.stored && b.stored.count > 0 {
						err = parent.MoveBucket(from, to)
					}
				case 3:
					// Names of buckets and keys of entries are apart.
					err = parent.Put("key "+name(), fmt.Append(nil, rnd.IntN(9)))
				default:
					err = b.Put("key "+name(), fmt.Append(nil, rnd.IntN(9)))
				}
				if err != nil {
					return err
				}
			}
			return nil
		}))
		before := w.dump(t)
		must(t, w.View(func(tx *Tx) error {
			b, err := tx.Bucket("whole")
			if err == nil && b.Count() != strings.Count(before, "\n") {
				t.Errorf("%d entries are counted, of\n%s", b.Count(), before)
			}
			return err
		}))
		must(t, w.Close())
		w = load(t, dir)
		if after := w.dump(t); after != before {
			t.Fatalf("before a start\n%s\nafter it\n%s", before, after)
		}
	}
}

// TestLargeDatabaseIsCopied needs several transactions.
func TestLargeDatabaseIsCopied(t *testing.T) {
	dir := t.TempDir()
	w := load(t, dir)
	for i := range 5 {
		must(t, w.Update(func(tx *Tx) error {
			b, err := obtain(tx, fmt.Sprint("whole/x/", i))
			for j := range 200 {
				if err == nil {
					err = b.Put(fmt.Sprint(j), make([]byte, 10_000+i))
				}
			}
			return err
		}))
	}
	must(t, w.put("single/f", numbered(3)...))
	before := w.dump(t)
	must(t, w.Close())
	if load(t, dir).dump(t) != before {
		t.Error("the copy differs")
	}
}

// TestUnwritableDirectory cannot create the database for a while: what was there is read, and written with the next
// change.
func TestUnwritableDirectory(t *testing.T) {
	dir := t.TempDir()
	before := filled(t, dir)
	blocked := filepath.Join(dir, databaseName+temporarySuffix, "x")
	must(t, os.MkdirAll(blocked, 0o700))
	w := watch(dir)
	must(t, w.Load())
	if w.Unwritten() == nil || w.dump(t) != before {
		t.Errorf("unwritten %v, content\n%s\nwant\n%s", w.Unwritten(), w.dump(t), before)
	}
	if err := w.put("whole", "c=3"); err == nil {
		t.Error("it is written")
	}
	must(t, w.SetOutdated(true))
	if got := files(t, dir); got != "state.db.outdated state.db.tmp state.db.tmp/x" {
		t.Errorf("files %q", got)
	}
	// The name is another one now, so that nothing is in the way.
	must(t, w.put("whole", "c=3"))
	must(t, w.SetOutdated(false))
	must(t, w.Close())
	if err := w.put("whole", "c=4"); !errors.Is(err, ErrNotOpen) {
		t.Errorf("after Close: %v", err)
	}
	must(t, os.RemoveAll(filepath.Dir(blocked)))
	if got := load(t, dir).dump(t); len(got) != len(before)+len("whole c=3\n") {
		t.Errorf("after a start\n%s", got)
	}
}

// TestKilled tells a process that was killed from one that ended, and from a machine that was
// started anew.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	w := load(t, dir)
	if w.Killed() {
		t.Error("nothing was there before, and it was killed")
	}
	killed := t.TempDir()
	must(t, os.CopyFS(killed, os.DirFS(dir)))
	must(t, w.Close())
	if w = load(t, dir); w.Killed() {
		t.Error("it ended, and it was killed")
	}
	if w = load(t, killed); !w.Killed() {
		t.Error("it was killed, and it ended")
	}
	must(t, w.Close())
	db, err := bolt.Open(filepath.Join(killed, databaseName), 0o600, nil)
	must(t, err)
	must(t, errors.Join(db.Update(func(tx *bolt.Tx) error { return tx.Bucket(stateBucket).Put(runningKey, []byte("an earlier boot")) }), db.Close()))
	if load(t, killed).Killed() {
		t.Error("the machine was started anew, and it was killed")
	}
}

// TestTask has a task of the store, whose transactions leave room for others, fail and run once more at the end.
func TestTask(t *testing.T) {
	dir := t.TempDir()
	w := watch(dir)
	var fails atomic.Pointer[error]
	task := w.NewTask("whole", "it fails", "it works again", func() error {
		if err := fails.Load(); err != nil {
			return *err
		}
		return w.put("whole", "task=1")
	})
	must(t, w.Load())
	results := make(chan error, 1)
	task.Await(func(err error) { results <- err })
	must(t, w.put("whole", "other=1"))
	must(t, <-results)
	broken := errors.New("broken")
	fails.Store(&broken)
	task.Await(func(err error) { results <- err })
	if err := <-results; !errors.Is(err, broken) || !errors.Is(task.Err(), broken) {
		t.Errorf("error %v, failing %v", err, task.Err())
	}
	fails.Store(nil)
	must(t, w.Close())
	if task.Err() != nil || w.failed["whole"] != 1 || !strings.Contains(w.log.String(), "it works again") {
		t.Errorf("failing %v, failures %v, log %s", task.Err(), w.failed, w.log.String())
	}
	if got := load(t, dir).dump(t); got != "whole other=1\nwhole task=1\n" {
		t.Errorf("content %q", got)
	}
}

// TestTemporaryFilesAreRemoved spares all but what Load and Room make.
func TestTemporaryFilesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"state.db.tmp", "room12.tmp", "c.tmp-x", "tmp"} {
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	must(t, os.Mkdir(filepath.Join(dir, "d.tmp"), 0o700))
	removeTemporary(dir)
	if got := files(t, dir); got != "c.tmp-x d.tmp tmp" {
		t.Fatalf("files %q", got)
	}
}

// TestQuarantineIsBounded keeps a few files, and says when there are too many.
func TestQuarantineIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	for i := range maxQuarantined + 1 {
		must(t, os.WriteFile(path, []byte{byte(i)}, 0o600))
		if _, err := quarantine(path, damagedSuffix); (err == nil) != (i < maxQuarantined) {
			t.Fatalf("file %d: %v", i, err)
		}
	}
	if b, err := os.ReadFile(path + ".damaged"); err != nil || len(b) != 1 || b[0] != 0 {
		t.Fatalf("the first one renamed is %v, %v", b, err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// watched is a Store whose log and failures a test reads.
type watched struct {
	*Store
	mu     sync.Mutex
	log    bytes.Buffer
	failed map[string]int
}

func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(b)
}

// watch returns a store with a part that is lost as a whole, and one whose buckets are lost alone.
func watch(path string) *watched {
	w := &watched{failed: make(map[string]int)}
	w.Store = New(Config{Path: path, Retry: time.Hour, Logger: slog.New(slog.NewTextHandler(w, nil)), Failed: func(kind string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.failed[kind]++
	}})
	w.Register(Part{Bucket: "whole", Kind: "whole", Lost: "all of it is lost"})
	w.Register(Part{Bucket: "single", Kind: "single", Single: true, Lost: "one is lost"})
	return w
}

// load loads a directory without damage.
func load(t testing.TB, path string) *watched {
	t.Helper()
	w := watch(path)
	must(t, w.Load())
	if len(w.failed) > 0 {
		t.Fatalf("failures %v: %s", w.failed, w.log.String())
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// obtain returns the bucket of a path.
func obtain(tx *Tx, path string) (*Bucket, error) {
	names := strings.Split(path, "/")
	b, err := tx.Bucket(names[0])
	for _, name := range names[1:] {
		if err == nil {
			b, err = b.Obtain(name)
		}
	}
	return b, err
}

// put puts entries into the bucket of a path.
func (w *watched) put(path string, entries ...string) error {
	return w.Update(func(tx *Tx) error {
		b, err := obtain(tx, path)
		for _, e := range entries {
			if err == nil {
				key, value, _ := strings.Cut(e, "=")
				err = b.Put(key, []byte(value))
			}
		}
		return err
	})
}

// dump returns everything in the parts.
func (w *watched) dump(t testing.TB) string {
	t.Helper()
	all := map[string]string{}
	var add func(path string, b *Bucket)
	add = func(path string, b *Bucket) {
		for key, value := range b.From("") {
			all[path+" "+key] = string(value)
		}
		for _, name := range b.Names() {
			add(path+"/"+name, b.Bucket(name))
		}
	}
	must(t, w.View(func(tx *Tx) error {
		for _, name := range []string{"whole", "single"} {
			b, err := tx.Bucket(name)
			if err != nil {
				return err
			}
			add(name, b)
		}
		return nil
	}))
	var out strings.Builder
	for _, key := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&out, "%s=%s\n", key, all[key])
	}
	return out.String()
}

// files returns the names in a directory, and below it.
func files(t testing.TB, dir string) string {
	t.Helper()
	var names []string
	must(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err == nil && path != dir {
			names = append(names, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	}))
	return strings.Join(names, " ")
}

// numbered returns entries.
func numbered(n int) (entries []string) {
	for i := range n {
		entries = append(entries, fmt.Sprintf("key %04d=value %d", i, i))
	}
	return entries
}

// filled makes a directory with entries in both parts, and returns its content.
func filled(t testing.TB, dir string) string {
	t.Helper()
	w := load(t, dir)
	must(t, w.put("whole", "a=1", "b=2"))
	must(t, w.put("whole/x/y", numbered(40)...))
	must(t, w.put("single/f", numbered(40)...))
	must(t, w.put("single/g", numbered(400)...))
	content := w.dump(t)
	must(t, w.Close())
	return content
}
