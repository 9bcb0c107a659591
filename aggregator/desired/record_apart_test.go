package desired_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/views"
)

// TestRecordApart changes a table with many shares. What was stored of the records, some of which
// could not be, has each share as it is, and so has the scope each declaration.
func TestRecordApart(t *testing.T) {
	h := newHarness(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test
	name := func() string { return fmt.Sprintf("o%d", r.IntN(900)) }
	all := desired.TableUpdate{Table: ipWeft}
	for i := range 700 {
		all.PutSets = append(all.PutSets, addrSet(fmt.Sprintf("o%d", i)))
	}
	h.commit(snapshot(services, 0, all), snapshot(policy, 0, in(ipWeft, addrSet("o1", member("10.0.0.1")))))
	stored, whole := map[string]*desired.TableRecord{}, 0
	for step := range 300 {
		tu := in(ipWeft, addrSet(name()))
		for range r.IntN(4) {
			set := name()
			tu.PutSets = append(tu.PutSets, addrSet(set))
			tu.PutChains = append(tu.PutChains, regular(name(), rule("a", "@"+set)))
			tu.DeleteChains = append(tu.DeleteChains, name())
		}
		h.commit(patch(services, tu))
		record := views.Record(h.State)
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
		tr = &views.Record(h.State).Fragments[1].Tables[0]
		maps.Copy(stored, tr.Shares)
		holding := h.Fragments[services].Tables[ipWeft]
		for key, share := range stored {
			if share == nil {
				delete(stored, key)
			}
		}
		if len(stored) != len(holding.Shares) {
			t.Fatalf("%d shares are stored of %d", len(stored), len(holding.Shares))
		}
		for id := range holding.Shares {
			if want := views.RecordShare(holding, id); !reflect.DeepEqual(stored[id.String()], want) {
				t.Fatalf("%s is stored as %+v, want %+v", id, stored[id.String()], want)
			}
		}
		scope := h.Scope().Table(ipWeft)
		for i := range 900 {
			for _, id := range []merge.ObjectID{merge.SetID(fmt.Sprintf("o%d", i)), merge.ChainID(fmt.Sprintf("o%d", i))} {
				var want any
				if o := h.Tables[ipWeft].Parts[id]; o != nil && o.Exists() {
					want = o.Declared()
				}
				if got := scope.Decl(id); got != want {
					t.Fatalf("the scope has %v for %s, want %v", got, id, want)
				}
			}
		}
	}
	if whole != 1 {
		t.Errorf("all shares were stored %d times, want once", whole)
	}
}
