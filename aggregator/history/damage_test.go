package history

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/weft-proxy/weft/aggregator/store"
)

// TestTornAndDamaged opens databases that a crash or a bad disk has left: there is a history
// in any case, and the damaged one is kept beside it.
func TestTornAndDamaged(t *testing.T) {
	dir := t.TempDir()
	r := start(t, Config{Dir: dir})
	for revision := uint64(1); revision <= 50; revision++ {
		r.Record(snapshot(revision, revision > 1, list("a", fmt.Sprint("10.0.0.", revision))))
	}
	if err := r.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.stop()
	path := filepath.Join(dir, databaseName)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(5, 6)) //nolint:gosec // a test
	for i := range 30 {
		b := slices.Clone(whole)
		if i%2 == 0 {
			b = b[:rnd.IntN(len(b))]
		} else {
			for range 20 {
				b[rnd.IntN(len(b))] ^= byte(1 + rnd.IntN(255))
			}
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		r := start(t, Config{Dir: dir})
		r.Record(snapshot(100, true, list("b", "10.0.0.1")))
		if err := r.Flush(t.Context()); err != nil {
			// One more attempt finds the new database.
			err = r.Flush(t.Context())
			if err != nil {
				t.Fatalf("case %d: %v", i, err)
			}
		}
		if _, err := r.Compare(t.Context(), 99, 100, everything); err != nil && !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrForgotten) {
			t.Fatalf("case %d: %v", i, err)
		}
		r.stop()
	}
}

// TestOtherVersionIsLeft opens databases of other versions, of weft and of bbolt: nothing is recorded,
// and the file is as it was, so that the version of weft that wrote it goes on with it.
func TestOtherVersionIsLeft(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, databaseName)
	r := start(t, Config{Dir: dir})
	r.Record(snapshot(1, false, list("a", "10.0.0.1")))
	if err := r.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.stop()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(b []byte){
		"weft": func([]byte) {
			db, err := bolt.Open(path, 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			err = db.Update(func(tx *bolt.Tx) error { return tx.Bucket(metaBucket).Put(versionKey, []byte("3")) })
			if err := errors.Join(err, db.Close()); err != nil {
				t.Fatal(err)
			}
		},
		// The version is the second word of both copies of bbolt's meta data.
		"bbolt": func(b []byte) {
			b[16+4], b[os.Getpagesize()+16+4] = 3, 3
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, whole, 0o600); err != nil {
				t.Fatal(err)
			}
			change(slices.Clone(whole))
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			r := start(t, Config{Dir: dir})
			r.Record(snapshot(2, true, list("a", "10.0.0.2")))
			if err := r.Flush(t.Context()); !errors.Is(err, ErrUnavailable) || !errors.Is(err, store.ErrVersion) {
				t.Errorf("flush: %v, want %v", err, store.ErrVersion)
			}
			r.stop()
			after, err := os.ReadFile(path)
			if err != nil || !slices.Equal(before, after) {
				t.Errorf("the file of another version was changed (%v)", err)
			}
			if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
				t.Errorf("files %v (%v), want the database alone", names, err)
			}
		})
	}
}

// TestEarlierFormatIsReplaced opens a database of the first format: it is renamed, and a new one begins.
func TestEarlierFormatIsReplaced(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, databaseName)
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		meta, err := tx.CreateBucket(metaBucket)
		return errors.Join(err, meta.Put(versionKey, []byte(firstVersion)))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	r := start(t, Config{Dir: dir})
	r.Record(snapshot(1, true, list("a", "10.0.0.1")))
	if all, _, err := r.List(t.Context(), Query{Reader: everything}); err != nil || len(all) != 1 {
		t.Errorf("entries %v, error %v", all, err)
	}
	if _, err := os.Stat(path + damagedSuffix); err != nil {
		t.Error(err)
	}
}

// TestUnwritable begins where nothing can be written, and goes on when it can: what waited is
// recorded, and no more than is bounded.
func TestUnwritable(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, databaseName)
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	r := start(t, Config{Dir: dir, MaxEntries: 2 * maxWaiting})
	for revision := uint64(1); revision <= maxWaiting+100; revision++ {
		r.Record(snapshot(revision, revision > 1, list("a", fmt.Sprint("10.0.", revision/256, ".", revision%256))))
	}
	// Attempts that fail add nothing to what waits.
	const attempts = 5
	for i := range attempts {
		if err := r.Flush(t.Context()); !errors.Is(err, ErrUnavailable) || r.Failing() == nil {
			t.Fatalf("error %v, failing %v", err, r.Failing())
		}
		r.Record(snapshot(uint64(maxWaiting+101+i), true, list("a", "10.0.0.1")))
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for r.Flush(t.Context()) != nil {
	}
	all, _, err := r.List(t.Context(), Query{Reader: everything})
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, e := range all {
		total += max(1, int(e.GetLost())) //nolint:gosec // small
	}
	if len(all) > maxWaiting+1 || total != maxWaiting+100+attempts || r.lost != 100+attempts {
		t.Fatalf("%d entries for %d commits, %d lost", len(all), total, r.lost)
	}
	if d := compare(t, r, maxWaiting-1, maxWaiting+100+attempts); d.To.State != unknown {
		t.Fatalf("content after the loss: %v", d.To)
	}
}
