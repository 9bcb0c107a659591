package store

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

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
