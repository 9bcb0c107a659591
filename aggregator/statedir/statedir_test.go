package statedir

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/entries"
	"github.com/weft-proxy/weft/aggregator/store"
	"github.com/weft-proxy/weft/aggregator/trusted"
	"github.com/weft-proxy/weft/conntrack"
)

// TestContentsSurvive stores everything, and reads it again.
func TestContentsSurvive(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "weft")
	d, c := load(t, dir)
	if c.Trusted || c.Revision+uint64(len(c.Fragments)+len(c.Flows)) > 0 {
		t.Fatalf("a new directory holds %+v", c)
	}
	r := Record{Desired: desired.Record{Fragments: []desired.FragmentRecord{{Publisher: "p", Name: "one"}}}}
	must(t, d.SaveRecord(r, 7))
	one, large, gone := fragment("one", 3), fragment("large", 3*partEntries), fragment("gone", 1)
	must(t, storeNow(d, snapshot(one), snapshot(large), snapshot(gone)))
	must(t, storeNow(d, Update{Fragment: key("gone")}, Update{Fragment: key("unknown")}))
	must(t, d.Close())

	d, c = load(t, dir)
	if !c.Trusted || !reflect.DeepEqual(c.Record, r) || c.Revision < 7 {
		t.Fatalf("contents %+v", c)
	}
	wantFragments(t, c, large, one)
	// A large one is replaced by a small one, and the other way round.
	one, large = large, one
	one.Name, large.Name = "one", "large"
	must(t, storeNow(d, snapshot(one), snapshot(large)))
	must(t, d.RemoveRecord())
	must(t, d.Close())
	_, c = load(t, dir)
	if c.Trusted {
		t.Error("the record is still there")
	}
	wantFragments(t, c, large, one)
}

// TestNothingIsStoredWithoutADirectory calls everything on a Dir without a path.
func TestNothingIsStoredWithoutADirectory(t *testing.T) {
	d, c := load(t, "")
	if !reflect.DeepEqual(c, &Contents{}) {
		t.Fatalf("contents %+v", c)
	}
	must(t, errors.Join(d.SaveRecord(Record{}, 1), d.ReserveRevision(1<<40), d.RemoveRecord(), d.Close()))
}

// TestPatchesLeadToSnapshots stores random patches, and compares what is stored
// with the fragment that they lead to.
func TestPatchesLeadToSnapshots(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	d, _ := load(t, dir)
	want := fragment("f", 10)
	must(t, storeNow(d, snapshot(want)))
	for range 40 {
		var changes []Update
		for range 1 + rnd.IntN(4) {
			p := &weftv1.Patch{Fragment: "f", Tables: []*weftv1.TablePatch{randomPatch(rnd)}}
			follow(want, p.GetTables()[0])
			changes = append(changes, Update{Fragment: key("f"), Patch: func() *weftv1.Patch { return p }})
		}
		must(t, storeNow(d, changes...))
		must(t, d.Close())
		var c *Contents
		d, c = load(t, dir)
		wantFragments(t, c, want)
	}
}

// randomPatch changes a few things of table ip demo.
func randomPatch(rnd *rand.Rand) *weftv1.TablePatch {
	p := &weftv1.TablePatch{Family: "ip", Name: "demo"}
	name := func() string { return string(rune('a' + rnd.IntN(3))) }
	member := func() string { return fmt.Sprintf("10.0.0.%d", rnd.IntN(20)) }
	switch rnd.IntN(5) {
	case 0:
		p.DeleteChains = []string{name()}
		p.PutChains = []*weftv1.Chain{{Name: name(), Rules: []*weftv1.Rule{{Text: member()}}}}
	case 1:
		p.DeleteSets = []string{name()}
		p.PutSets = []*weftv1.Set{{Name: name(), Comment: member(), Elements: []*weftv1.Element{{Key: member()}}}}
	case 2:
		p.DeleteObjects = []*weftv1.ObjectReference{{Kind: "counter", Name: name()}}
		p.PutObjects = []*weftv1.Object{{Kind: "ct helper", Name: name(), Text: member()}}
		p.DeleteFlowtables, p.PutFlowtables = []string{"f"}, []*weftv1.Flowtable{{Name: "f", Hook: member()}}
	default:
		p.Elements = []*weftv1.ElementPatch{{Set: "a-b", Remove: []string{member()}, Add: []*weftv1.Element{{Key: member(), Comment: member()}}}}
	}
	return p
}

// follow applies a patch of randomPatch to a fragment.
func follow(f *weftv1.Fragment, p *weftv1.TablePatch) {
	t := f.GetTables()[0]
	for _, o := range p.GetDeleteObjects() {
		t.Objects = without(t.GetObjects(), func(x *weftv1.Object) bool { return x.GetKind() == o.GetKind() && x.GetName() == o.GetName() })
	}
	for _, n := range p.GetDeleteFlowtables() {
		t.Flowtables = without(t.GetFlowtables(), func(x *weftv1.Flowtable) bool { return x.GetName() == n })
	}
	for _, n := range p.GetDeleteChains() {
		t.Chains = without(t.GetChains(), func(x *weftv1.Chain) bool { return x.GetName() == n })
	}
	for _, n := range p.GetDeleteSets() {
		t.Sets = without(t.GetSets(), func(x *weftv1.Set) bool { return x.GetName() == n })
	}
	for _, o := range p.GetPutObjects() {
		t.Objects = append(without(t.GetObjects(), func(x *weftv1.Object) bool { return x.GetKind() == o.GetKind() && x.GetName() == o.GetName() }), o)
	}
	for _, c := range p.GetPutChains() {
		t.Chains = append(without(t.GetChains(), func(x *weftv1.Chain) bool { return x.GetName() == c.GetName() }), c)
	}
	for _, s := range p.GetPutSets() {
		// The patch is stored later, and gives its elements away.
		whole := &weftv1.Set{Name: s.GetName(), Comment: s.GetComment(), Elements: s.GetElements()}
		t.Sets = append(without(t.GetSets(), func(x *weftv1.Set) bool { return x.GetName() == s.GetName() }), whole)
	}
	t.Flowtables = append(t.GetFlowtables(), p.GetPutFlowtables()...)
	for _, e := range p.GetElements() {
		for _, s := range t.GetSets() {
			if s.GetName() != e.GetSet() {
				continue
			}
			for _, gone := range append(e.GetRemove(), e.GetAdd()[0].GetKey()) {
				s.Elements = without(s.GetElements(), func(x *weftv1.Element) bool { return x.GetKey() == gone })
			}
			s.Elements = append(s.Elements, e.GetAdd()...)
		}
	}
}

func without[T any](list []T, gone func(T) bool) []T {
	var out []T
	for _, x := range list {
		if !gone(x) {
			out = append(out, x)
		}
	}
	return out
}

// TestRevisionsAreNeverReused starts again and again; every start may use only
// revisions that no one before it may have used.
func TestRevisionsAreNeverReused(t *testing.T) {
	dir := t.TempDir()
	used := uint64(0)
	for i := range 5 {
		d, c := load(t, dir)
		if c.Revision < used {
			t.Fatalf("start %d may use revision %d, and %d was used", i, c.Revision+1, used)
		}
		used = c.Revision
		for range 3 * revisionsAhead {
			used++
			must(t, d.ReserveRevision(used))
		}
		must(t, d.SaveRecord(Record{}, used+1))
		used++
		must(t, d.Close())
	}
}

// TestUnstoredRecordIsNotTrusted has the store of a record fail.
func TestUnstoredRecordIsNotTrusted(t *testing.T) {
	dir := t.TempDir()
	d, _ := load(t, dir)
	identity := desired.FragmentRecord{Publisher: "p", Name: "f", Lifetime: "sticky"}
	described := Record{Desired: desired.Record{Fragments: []desired.FragmentRecord{identity}}}
	described.Desired.Fragments[0].Tables = []desired.TableRecord{{Family: "ip", Name: "t"}}
	must(t, d.SaveRecord(described, 1))
	must(t, storeNow(d, snapshot(fragment("f", 2))))
	d.broken.Store(true)
	if err := d.SaveRecord(Record{}, 2); err == nil {
		t.Fatal("the record is stored")
	}
	if got := files(t, dir); got != "state.db.outdated" {
		t.Fatalf("files %q", got)
	}
	must(t, d.Close())
	w := watch(dir)
	c, err := w.Load()
	must(t, err)
	if c.Trusted || !reflect.DeepEqual(c.Record.Desired.Fragments, []desired.FragmentRecord{identity}) || w.failed[KindRecord] != 1 {
		t.Errorf("contents %+v, failures %v", c, w.failed)
	}
	wantFragments(t, c, fragment("f", 2))
	must(t, w.SaveRecord(described, 3))
	if got := files(t, dir); got != "state.db" {
		t.Errorf("files %q", got)
	}
	must(t, w.Close())
	if _, c = load(t, dir); !c.Trusted {
		t.Error("the record is not trusted")
	}
}

// TestChangesAreRetried has transactions fail for a while.
func TestChangesAreRetried(t *testing.T) {
	dir := t.TempDir()
	d, _ := load(t, dir)
	must(t, storeNow(d, snapshot(fragment("f", 1)), snapshot(fragment("g", 1))))
	d.broken.Store(true)
	if err := storeNow(d, snapshot(fragment("f", 2))); err == nil || d.Failing() == nil {
		t.Fatalf("stored (%v), failing %v", err, d.Failing())
	}
	add := func(key string) func() *weftv1.Patch {
		return func() *weftv1.Patch {
			return &weftv1.Patch{Fragment: "f", Tables: []*weftv1.TablePatch{{Family: "ip", Name: "demo", Elements: []*weftv1.ElementPatch{{Set: "a", Add: []*weftv1.Element{{Key: key}}}}}}}
		}
	}
	if err := storeNow(d, Update{Fragment: key("f"), Patch: add("10.0.0.2")}, Update{Fragment: key("g")}); err == nil {
		t.Fatal("stored")
	}
	d.broken.Store(false)
	must(t, storeNow(d, Update{Fragment: key("f"), Patch: add("10.0.0.3")}))
	if d.Failing() != nil || len(d.pending) > 0 {
		t.Errorf("failing %v, %d pending", d.Failing(), len(d.pending))
	}
	must(t, d.Close())
	_, c := load(t, dir)
	wantFragments(t, c, fragment("f", 4))
}

// TestChangesCoalesce queues many changes of one fragment.
func TestChangesCoalesce(t *testing.T) {
	d := watch(t.TempDir()) // Without Load nothing is stored.
	for i := range 1000 {
		d.Store(snapshot(fragment("f", i)))
	}
	if len(d.pending) != 1 {
		t.Fatalf("%d changes are queued", len(d.pending))
	}
}

// TestInterruptedStageIsForgotten stages a part of a large snapshot.
func TestInterruptedStageIsForgotten(t *testing.T) {
	dir := t.TempDir()
	d, _ := load(t, dir)
	must(t, storeNow(d, snapshot(fragment("f", 1))))
	must(t, d.stage(key("f").String(), entries.Of(fragment("f", partEntries+100))))
	must(t, d.Close())
	d, c := load(t, dir)
	wantFragments(t, c, fragment("f", 1))
	must(t, d.store.Update(func(tx *store.Tx) error {
		b, err := tx.Bucket(stagedBucket)
		if err == nil && len(b.Names()) > 0 {
			err = fmt.Errorf("%s is still staged", b.Names())
		}
		return err
	}))
}

// TestSecondProcessIsRefused loads a directory that is in use.
func TestSecondProcessIsRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the lock")
	}
	dir := t.TempDir()
	load(t, dir)
	if _, err := watch(dir).Load(); !errors.Is(err, store.ErrInUse) || !strings.Contains(err.Error(), dir) {
		t.Fatalf("load: %v", err)
	}
}

// TestConfiguredIsStored loads small and large fragments again, and a patched one.
func TestConfiguredIsStored(t *testing.T) {
	dir := t.TempDir()
	d, _ := load(t, dir)
	configured := func(name string, n int) Update {
		c := snapshot(fragment(name, n))
		c.Configured = true
		return c
	}
	must(t, storeNow(d, configured("large", partEntries+1), snapshot(fragment("other", 1)), configured("replaced", 1), configured("small", 1)))
	must(t, storeNow(d, snapshot(fragment("replaced", 2)), Update{Fragment: key("small"), Patch: func() *weftv1.Patch { return &weftv1.Patch{Fragment: "small"} }}))
	for range 2 {
		must(t, d.Close())
		var c *Contents
		d, c = load(t, dir)
		want := map[string]bool{"large": true, "other": false, "replaced": false, "small": true}
		if len(c.Fragments) != len(want) {
			t.Fatalf("%d fragments, want %d", len(c.Fragments), len(want))
		}
		for _, f := range c.Fragments {
			if f.Configured != want[f.Key.Name] {
				t.Errorf("fragment %s is configured: %t, want %t", f.Key, f.Configured, want[f.Key.Name])
			}
		}
	}
}

// TestUnsafeDirectoryIsRefused changes nothing in it.
func TestUnsafeDirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	d, _ := load(t, dir)
	must(t, storeNow(d, snapshot(fragment("f", 1))))
	must(t, d.Close())
	must(t, os.Chmod(dir, 0o777))
	w := watch(dir)
	if _, err := w.Load(); !errors.Is(err, trusted.ErrUnsafe) || len(w.failed) != 0 {
		t.Errorf("load: %v, failures %v; want %v", err, w.failed, trusted.ErrUnsafe)
	}
	if got := files(t, dir); got != "state.db" {
		t.Errorf("files %s", got)
	}
	must(t, os.Chmod(dir, 0o750))
	_, c := load(t, dir)
	wantFragments(t, c, fragment("f", 1))
}

// apartOf returns a record with a table whose changed shares, sets, are apart from it.
func apartOf(whole bool, shares map[string]*desired.TableRecord) Record {
	t := desired.TableRecord{Family: "ip", Name: "t", Comment: "hello", Apart: true, Whole: whole, Shares: shares}
	return Record{Desired: desired.Record{Fragments: []desired.FragmentRecord{
		{Publisher: "p", Name: "f", Lifetime: "sticky", Tables: []desired.TableRecord{t}}, {Publisher: "q", Name: "g"}}}}
}

func shareOf(name string) *desired.TableRecord {
	return &desired.TableRecord{Sets: []desired.SetRecord{{Name: name}}}
}

// TestShares stores the shares of a table apart from the record, and changes of them.
func TestShares(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	d, _ := load(t, dir)
	all := map[string]*desired.TableRecord{}
	for i := range 1000 {
		all[fmt.Sprintf("set s%03d", i)] = shareOf(fmt.Sprintf("s%03d", i))
	}
	must(t, d.SaveRecord(apartOf(true, all), 1))
	must(t, d.SaveRecord(apartOf(true, map[string]*desired.TableRecord{"set a": shareOf("a"), "set b": shareOf("b"), "set c": shareOf("c")}), 2))
	must(t, d.SaveRecord(apartOf(false, map[string]*desired.TableRecord{"set b": nil, "set c": {Sets: []desired.SetRecord{{Name: "c", Affinity: true}}}, "set gone": nil}), 3))
	must(t, d.SaveRecord(apartOf(false, nil), 4))
	want := apartOf(false, nil)
	table := &want.Desired.Fragments[0].Tables[0]
	table.Apart, table.Sets = false, []desired.SetRecord{{Name: "a"}, {Name: "c", Affinity: true}}
	for _, when := range []string{"after a start", "after another one"} {
		must(t, d.Close())
		var c *Contents
		if d, c = load(t, dir); !c.Trusted || !reflect.DeepEqual(c.Record, want) {
			t.Fatalf("%s: record %+v, want %+v", when, c.Record, want)
		}
	}
	must(t, d.SaveRecord(apartOf(true, all), 5))
	must(t, d.SaveRecord(Record{}, 6))
	must(t, d.store.View(func(tx *store.Tx) error {
		b, err := tx.Bucket(sharesBucket)
		if err == nil && len(b.Names()) > 0 {
			t.Errorf("the shares of %s are still there", b.Names())
		}
		return err
	}))
}

// TestSharesAreMissing loses all shares: the record is not trusted.
func TestSharesAreMissing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	d, _ := load(t, dir)
	must(t, d.SaveRecord(apartOf(true, map[string]*desired.TableRecord{"set a": shareOf("a"), "set c": shareOf("c")}), 1))
	must(t, d.store.Update(func(tx *store.Tx) error {
		b, err := tx.Bucket(sharesBucket)
		if err != nil {
			return err
		}
		return b.DeleteBucket("p/f ip t")
	}))
	must(t, d.Close())
	_, c := load(t, dir)
	if f := c.Record.Desired.Fragments; c.Trusted || len(f) != 2 || f[0].Lifetime != "sticky" || f[0].Tables != nil {
		t.Errorf("trusted %t, fragments %+v: want the names and lifetimes of fragments alone", c.Trusted, f)
	}
}

// lost returns n destinations that have lost their last backend.
func lost(n int) []conntrack.Stale {
	out := make([]conntrack.Stale, n)
	for i := range out {
		out[i] = conntrack.Stale{
			Addr: netip.MustParseAddr("10.96.0.1"), Port: uint16(i), //nolint:gosec // a port
			Removed: []netip.AddrPort{netip.MustParseAddrPort("10.1.0.1:53")},
		}
	}
	return out
}

// wantNoted compares the notes that an earlier run has stored.
func wantNoted(t *testing.T, c *Contents, want []conntrack.Stale) {
	t.Helper()
	if fmt.Sprint(c.Flows) != fmt.Sprint(want) {
		t.Errorf("%v is noted, want %v", c.Flows, want)
	}
}

func TestNotesAreRead(t *testing.T) {
	dir := t.TempDir()
	d, c := load(t, dir)
	wantNoted(t, c, nil)
	must(t, d.SaveFlows(lost(3)))
	must(t, d.Close())
	for range 2 {
		d, c = load(t, dir)
		wantNoted(t, c, lost(3))
		must(t, d.Close())
	}
	d, _ = load(t, dir)
	must(t, d.SaveFlows(nil))
	must(t, d.Close())
	_, c = load(t, dir)
	wantNoted(t, c, nil)
}

// FuzzEntry reads arbitrary entries of a fragment: no panic.
func FuzzEntry(f *testing.F) {
	for _, e := range entries.Of(fragment("f", 2)) {
		b, err := proto.Marshal(e.Value)
		must(f, err)
		f.Add(e.Key, b)
	}
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		m := &weftv1.Fragment{}
		_ = entries.Add(m, "ip demo set a", []byte{})
		_ = entries.Add(m, key, value)
		_ = entries.Add(m, "ip demo set a 10.0.0.1", nil)
	})
}
