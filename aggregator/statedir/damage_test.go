package statedir

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/entries"
)

// whole makes a directory with a record and two fragments.
func whole(t testing.TB, dir string) {
	t.Helper()
	d, _ := load(t, dir)
	must(t, d.SaveRecord(Record{Desired: desired.Record{Fragments: []desired.FragmentRecord{{Publisher: "p", Name: "f", Lifetime: "durable"}}}}, 1))
	must(t, storeNow(d, snapshot(fragment("f", 40)), snapshot(fragment("g", 400))))
	must(t, d.Close())
}

// TestDatabaseTellsEveryDamage flips bits of a database and cuts it: whatever is
// returned is what was stored, and what is missing is reported.
func TestDatabaseTellsEveryDamage(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	original := t.TempDir()
	whole(t, original)
	content, err := os.ReadFile(filepath.Join(original, databaseName))
	must(t, err)
	flips := 150
	if testing.Short() {
		flips = 30
	}
	for i := range flips {
		damaged := bytes.Clone(content)
		bit := rnd.IntN(8 * len(damaged))
		damaged[bit/8] ^= 1 << (bit % 8)
		if i%10 == 0 {
			damaged = damaged[:rnd.IntN(len(damaged))]
		}
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, databaseName), damaged, 0o600))
		w := watch(dir)
		c, err := w.Load()
		if err != nil {
			t.Fatalf("bit %d of %d bytes: %v", bit, len(damaged), err)
		}
		for _, f := range c.Fragments {
			want := fragment("f", 40)
			if f.Key.Name == "g" {
				want = fragment("g", 400)
			}
			if !proto.Equal(sorted(f.Content), sorted(want)) {
				t.Fatalf("bit %d of %d bytes: fragment %s is read as %v", bit, len(damaged), f.Key, f.Content)
			}
		}
		if len(c.Fragments) < 2 && w.failed[KindDurable] == 0 || !c.Trusted && w.failed[KindRecord] == 0 {
			t.Fatalf("bit %d of %d bytes: %d fragments, trusted %v, and reported is %v", bit, len(damaged), len(c.Fragments), c.Trusted, w.failed)
		}
		// What is left goes on.
		must(t, storeNow(w.Dir, snapshot(fragment("h", 3))))
		must(t, w.Close())
		_, again := load(t, dir)
		if len(again.Fragments) != len(c.Fragments)+1 {
			t.Fatalf("bit %d of %d bytes: %d fragments are left, want %d", bit, len(damaged), len(again.Fragments), len(c.Fragments)+1)
		}
	}
}

// TestDamagedFragmentIsLostAlone damages an element of one of two fragments.
func TestDamagedFragmentIsLostAlone(t *testing.T) {
	dir := t.TempDir()
	whole(t, dir)
	path := filepath.Join(dir, databaseName)
	b, err := os.ReadFile(path)
	must(t, err)
	at := bytes.LastIndex(b, []byte("10.0.1.100")) // The key, and the value after it.
	if at < 0 {
		t.Fatal("the element is not found")
	}
	b[at+2] = '7'
	must(t, os.WriteFile(path, b, 0o600))
	w := watch(dir)
	c, err := w.Load()
	must(t, err)
	defer func() { _ = w.Close() }()
	wantFragments(t, c, fragment("f", 40))
	if !c.Trusted || w.failed[KindDurable] != 1 || w.failed[KindRecord] != 0 {
		t.Errorf("trusted %v, failures %v", c.Trusted, w.failed)
	}
	if log := w.log.String(); !strings.Contains(log, "fragment p/g") || !strings.Contains(log, path+damagedSuffix) {
		t.Errorf("log %s", log)
	}
	if got := files(t, dir); got != databaseName+" "+databaseName+damagedSuffix {
		t.Errorf("files %q", got)
	}
}

// TestNoDatabase finds other things in the place of the database.
func TestNoDatabase(t *testing.T) {
	for name, replace := range map[string]func(path string) error{
		"empty":              func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"text":               func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("weft "), 10_000), 0o600) },
		"zeros":              func(path string) error { return os.WriteFile(path, make([]byte, 1<<16), 0o600) },
		"directory":          func(path string) error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) },
		"fifo":               func(path string) error { return unix.Mkfifo(path, 0o600) },
		"dangling link":      func(path string) error { return os.Symlink("/nowhere", path) },
		"link to a device":   func(path string) error { return os.Symlink("/dev/zero", path) },
		"writable by others": func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o666)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, databaseName)
			must(t, replace(path))
			w := watch(dir)
			c, err := w.Load()
			must(t, err)
			if c.Trusted || w.failed[KindRecord] != 1 || w.failed[KindDurable] != 1 || !strings.Contains(w.log.String(), path+damagedSuffix) {
				t.Errorf("contents %+v, failures %v, log %s", c, w.failed, w.log.String())
			}
			if _, err := os.Lstat(path + damagedSuffix); err != nil {
				t.Error(err)
			}
			must(t, storeNow(w.Dir, snapshot(fragment("f", 1))))
			must(t, w.Close())
			_, c = load(t, dir)
			wantFragments(t, c, fragment("f", 1))
		})
	}
}

// FuzzEntry reads arbitrary entries of a fragment: no panic.
func FuzzEntry(f *testing.F) {
	for _, e := range entriesOf(fragment("f", 2), false) {
		b, err := proto.Marshal(e.Value)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(e.Key, b)
	}
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		m := &weftv1.Fragment{}
		_ = entries.Add(m, "ip demo set a", []byte{})
		_ = entries.Add(m, key, value)
		_ = entries.Add(m, "ip demo set a 10.0.0.1", nil)
	})
}
