package desired

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"testing"
)

// TestRecordApart changes a table with many shares. What was stored of the records, some of which
// could not be, has each share as it is, and so has the scope each declaration.
func TestRecordApart(t *testing.T) {
	h := newHarness(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test
	name := func() string { return fmt.Sprintf("o%d", r.IntN(900)) }
	all := TableUpdate{Table: ipWeft}
	for i := range 700 {
		all.PutSets = append(all.PutSets, addrSet(fmt.Sprintf("o%d", i)))
	}
	h.commit(snapshot(services, 0, all), snapshot(policy, 0, in(ipWeft, addrSet("o1", member("10.0.0.1")))))
	stored, whole := map[string]*TableRecord{}, 0
	for step := range 300 {
		tu := in(ipWeft, addrSet(name()))
		for range r.IntN(4) {
			set := name()
			tu.PutSets = append(tu.PutSets, addrSet(set))
			tu.PutChains = append(tu.PutChains, regular(name(), rule("a", "@"+set)))
			tu.DeleteChains = append(tu.DeleteChains, name())
		}
		h.commit(patch(services, tu))
		record := h.Record()
		tr := &record.Fragments[1].Tables[0]
		if len(tr.Sets) > 0 || !tr.Apart {
			t.Fatal("the shares are not apart")
		}
		if r.IntN(3) > 0 {
			if tr.Whole {
				clear(stored)
				whole++
			}
			maps.Copy(stored, tr.Shares)
			h.Recorded()
		}
		if step%20 != 19 {
			continue
		}
		tr = &h.Record().Fragments[1].Tables[0]
		maps.Copy(stored, tr.Shares)
		holding := h.fragments[services].tables[ipWeft]
		for key, share := range stored {
			if share == nil {
				delete(stored, key)
			}
		}
		if len(stored) != len(holding.shares) {
			t.Fatalf("%d shares are stored of %d", len(stored), len(holding.shares))
		}
		for id := range holding.shares {
			if want := holding.recordShare(id); !reflect.DeepEqual(stored[id.String()], want) {
				t.Fatalf("%s is stored as %+v, want %+v", id, stored[id.String()], want)
			}
		}
		scope := h.Scope().Table(ipWeft)
		for i := range 900 {
			for _, id := range []objectID{setID(fmt.Sprintf("o%d", i)), chainID(fmt.Sprintf("o%d", i))} {
				var want any
				if o := h.tables[ipWeft].parts[id]; o != nil && o.exists() {
					want = o.declared()
				}
				if got := scope.decl(id); got != want {
					t.Fatalf("the scope has %v for %s, want %v", got, id, want)
				}
			}
		}
	}
	if whole != 1 {
		t.Errorf("all shares were stored %d times, want once", whole)
	}
}
