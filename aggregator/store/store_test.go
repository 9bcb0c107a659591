package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

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

// BenchmarkLoad starts with a history of the default bound.
func BenchmarkLoad(b *testing.B) {
	dir := b.TempDir()
	w := load(b, dir)
	for i := range 40 {
		must(b, w.Update(func(tx *Tx) error {
			bucket, err := obtain(tx, fmt.Sprint("whole/log/", i%4))
			for j := range 1000 {
				if err == nil {
					err = bucket.Put(fmt.Sprintf("%08d", 1000*i+j), make([]byte, 400))
				}
			}
			return err
		}))
	}
	for b.Loop() {
		must(b, w.Close())
		w = load(b, dir)
	}
}
