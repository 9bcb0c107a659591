package statedir

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/entries"
)

// whole makes a directory with a record and two fragments.
func whole(t testing.TB, dir string) {
	t.Helper()
	d, _ := load(t, dir)
	must(t, d.SaveRecord(Record{Desired: desired.Record{Fragments: []desired.FragmentRecord{{Publisher: "p", Name: "f", Lifetime: "durable"}}}}, 1))
	must(t, store(d, snapshot(fragment("f", 40)), snapshot(fragment("g", 400))))
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
		must(t, store(w.Dir, snapshot(fragment("h", 3))))
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
			must(t, store(w.Dir, snapshot(fragment("f", 1))))
			must(t, w.Close())
			_, c = load(t, dir)
			wantFragments(t, c, fragment("f", 1))
		})
	}
}

// legacy writes the files that versions of weft before the database wrote.
func legacy(t testing.TB, dir string, fragments ...*weftv1.Fragment) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, legacyRecord), recordSeal.seal([]byte(legacyText)), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, legacyFlows), flowsSeal.seal([]byte(`[{"Port":53}]`)), 0o600))
	for _, f := range fragments {
		b, err := proto.Marshal(f)
		must(t, err)
		path := filepath.Join(dir, legacyDurable, "p", f.GetName()+legacyExt)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, fragmentSeal.seal(b), 0o600))
	}
}

const legacyText = `{"version":2,"revision":7,"books":[{"publisher":"p","name":"f","lifetime":"LIFETIME_DURABLE"}],"desired":{"fragments":[
{"publisher":"p","name":"f","priority":-1,"tables":[{"family":"ip","name":"t","chains":[{"name":"c","sets":["s"],"chains":["d"]}],"sets":[{"name":"s","conntrack":true}]}]}]}}`

// TestConvert reads the former files once.
func TestConvert(t *testing.T) {
	dir := t.TempDir()
	legacy(t, dir, fragment("f", 3), fragment("g", 0))
	for i := range 2 {
		d, c := load(t, dir)
		if !c.Trusted || c.Revision != 7 || len(c.Record.Desired.Fragments) != 1 || len(c.Flows) != 1 || c.Flows[0].Port != 53 {
			t.Fatalf("start %d: contents %+v", i, c)
		}
		if f := c.Record.Desired.Fragments[0]; f.Lifetime != "durable" || len(f.Tables) != 1 {
			t.Fatalf("start %d: fragment %+v", i, f)
		}
		wantFragments(t, c, fragment("f", 3), fragment("g", 0))
		must(t, d.Close())
		if got := files(t, dir); got != databaseName {
			t.Fatalf("start %d: files %q", i, got)
		}
	}
}

// TestConvertDistrustsAStaleRecord reads a record that is older than the kernel.
func TestConvertDistrustsAStaleRecord(t *testing.T) {
	dir := t.TempDir()
	legacy(t, dir)
	must(t, os.Rename(filepath.Join(dir, legacyRecord), filepath.Join(dir, legacyStale)))
	w := watch(dir)
	c, err := w.Load()
	must(t, err)
	defer func() { _ = w.Close() }()
	if c.Trusted || !reflect.DeepEqual(c.Record.Desired.Fragments, []desired.FragmentRecord{{Publisher: "p", Name: "f", Lifetime: "durable"}}) || c.Revision != 7 || w.failed[KindRecord] != 1 {
		t.Errorf("contents %+v, failures %v", c, w.failed)
	}
}

// TestConvertMovesDamagedFiles converts what is left of damaged files.
func TestConvertMovesDamagedFiles(t *testing.T) {
	dir := t.TempDir()
	legacy(t, dir, fragment("f", 3), fragment("g", 0))
	bad := filepath.Join(dir, legacyDurable, "p", "g.pb")
	must(t, os.Truncate(bad, 50))
	must(t, os.WriteFile(filepath.Join(dir, legacyFlows), []byte("x"), 0o600))
	w := watch(dir)
	c, err := w.Load()
	must(t, err)
	wantFragments(t, c, fragment("f", 3))
	if !c.Trusted || w.failed[KindDurable] != 1 || w.failed[KindFlows] != 1 || !strings.Contains(w.log.String(), bad+damagedSuffix) {
		t.Errorf("trusted %v, failures %v, log %s", c.Trusted, w.failed, w.log.String())
	}
	must(t, w.Close())
	if got := files(t, dir); got != "durable durable/p durable/p/g.pb.damaged flows.json.damaged weft.db" {
		t.Errorf("files %q", got)
	}
	load(t, dir)
}

// TestConvertRefusesOtherVersions names both versions, and changes nothing.
func TestConvertRefusesOtherVersions(t *testing.T) {
	for name, s := range map[string]seal{
		legacyRecord: recordSeal, legacyFlows: flowsSeal, filepath.Join(legacyDurable, "p", "f.pb"): fragmentSeal,
	} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			dir := t.TempDir()
			legacy(t, dir, fragment("f", 1))
			// Damage is not renamed either.
			must(t, os.WriteFile(filepath.Join(dir, legacyDurable, "p", "bad.pb"), nil, 0o600))
			must(t, os.WriteFile(filepath.Join(dir, name), seal{s.kind, 99}.seal([]byte("{}")), 0o600))
			before := files(t, dir)
			_, err := watch(dir).Load()
			if !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), "version 99") || !strings.Contains(err.Error(), name) {
				t.Errorf("load: %v", err)
			}
			if got := files(t, dir); got != before {
				t.Errorf("files %q, before %q", got, before)
			}
		})
	}
}

// TestSealTellsEveryDamage flips every bit of a sealed file, and cuts it at every
// byte.
func TestSealTellsEveryDamage(t *testing.T) {
	sealed := recordSeal.seal([]byte(`{"version":2,"desired":{}}`))
	if b, err := recordSeal.open(sealed); err != nil || string(b) != `{"version":2,"desired":{}}` {
		t.Fatalf("open: %q, %v", b, err)
	}
	for n := range sealed {
		if b, err := recordSeal.open(sealed[:n]); err == nil {
			t.Fatalf("cut after %d bytes: read as %q", n, b)
		}
		for bit := range 8 {
			damaged := bytes.Clone(sealed)
			damaged[n] ^= 1 << bit
			if b, err := recordSeal.open(damaged); err == nil && !bytes.EqualFold(damaged, sealed) {
				t.Fatalf("bit %d of byte %d flipped: read as %q", bit, n, b)
			}
		}
	}
	if _, err := fragmentSeal.open(sealed); !errors.Is(err, errUnsealed) {
		t.Fatalf("file of another kind: %v", err)
	}
	if _, err := (seal{recordSeal.kind, recordSeal.version + 1}).open(sealed); !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), "version 2, and this weft reads version 3") {
		t.Fatalf("file of another version: %v", err)
	}
}

// FuzzRecordFile reads arbitrary bytes in the place of the former record: no
// panic, and an error or a record that can be adopted by a kernel that has
// nothing.
func FuzzRecordFile(f *testing.F) {
	f.Add([]byte(legacyText), true)
	f.Add(recordSeal.seal([]byte(legacyText)), false)
	f.Add([]byte("weft-record 2 sha256:\n"), false)
	f.Fuzz(func(t *testing.T, b []byte, sealed bool) {
		if sealed {
			b = recordSeal.seal(b)
		}
		payload, err := recordSeal.open(b)
		if err != nil {
			return
		}
		c := &Contents{}
		if c.decodeRecord(payload) != nil {
			return
		}
		if _, err := json.Marshal(c.Record); err != nil {
			t.Fatal(err)
		}
		state := desired.New()
		state.Adopt(nil, c.Record.Desired)
		if plan := state.Plan(); len(plan.Ops) > 0 {
			t.Fatalf("adopting a record alone plans %v", plan.Ops)
		}
	})
}

// FuzzFragmentFile reads arbitrary bytes in the place of a former fragment: no
// panic, and an update or a rejection.
func FuzzFragmentFile(f *testing.F) {
	for _, m := range []*weftv1.Fragment{{Name: "f", Nft: "table ip t { chain c { drop; }; }"}, fragment("f", 1)} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, true)
		f.Add(fragmentSeal.seal(b), false)
	}
	f.Fuzz(func(t *testing.T, b []byte, sealed bool) {
		if sealed {
			b = fragmentSeal.seal(b)
		}
		payload, err := fragmentSeal.open(b)
		m := Fragment{Key: key("f"), Content: &weftv1.Fragment{}}
		if err != nil || m.decode(payload) != nil {
			return
		}
		adm := admission.NewSnapshot(admission.Config{Durable: true}, m.Key, desired.New().Scope())
		adm.AddFragment(m.Content)
		if u, err := adm.Finish(); (u == nil) == (err == nil) {
			t.Fatalf("update %v, error %v", u, err)
		}
	})
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
