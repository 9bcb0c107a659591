package desired_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// everything is the reader who sees all.
var everything = desired.Reader{All: true}

// contentOf is views.Content with the elements in place of views.
func contentOf(s *merge.State, key desired.Key) ([]desired.TableUpdate, bool) {
	tables, ok := views.Content(s, key)
	for i := range tables {
		for j := range tables[i].PutSets {
			set := &tables[i].PutSets[j]
			set.Elements, set.View = slices.Collect(set.All()), nil
		}
	}
	return tables, ok
}

// TestReadersSeeTheirOwn reads a table that two publishers share.
func TestReadersSeeTheirOwn(t *testing.T) {
	h := newHarness(t)
	mine, other := desired.Key{"mine", "f"}, desired.Key{"other", "f"}
	h.commit(
		snapshot(mine, 0, in(ipWeft, regular("both", rule("a")), addrSet("s", member("10.0.0.1"), member("10.0.0.2")))),
		snapshot(other, 0, in(ipWeft, regular("both", rule("b")), regular("theirs", rule("c")), addrSet("s", member("10.0.0.2"), member("10.0.0.3")), addrSet("hidden", member("10.0.0.4")))),
		snapshot(desired.Key{"other", "g"}, 0, in(ipDeny, addrSet("x"))),
	)
	reader := desired.Reader{Publisher: "mine"}
	if tables := views.Tables(h.State, reader); len(tables) != 1 || tables[0].Chains != 1 || tables[0].Rules != 1 || tables[0].Sets != 1 || tables[0].Elements != 2 || len(tables[0].Fragments) != 1 {
		t.Errorf("tables are %+v: want the reader's own content", tables)
	}
	m, _ := views.Merged(h.State, ipWeft, desired.DetailElements, reader, nil)
	if len(m.Chains) != 1 || len(m.Chains[0].Rules) != 1 || m.Chains[0].Rules[0].Owner != mine.String() || len(m.Chains[0].Fragments) != 1 {
		t.Errorf("chains are %+v: want the reader's own rule", m.Chains)
	}
	if len(m.Sets) != 1 || len(slices.Collect(m.Sets[0].Elements.Sorted())) != 2 || fmt.Sprint(m.Sets[0].Fragments) != fmt.Sprint([]desired.Key{mine}) {
		t.Errorf("sets are %+v: want the reader's own elements", m.Sets)
	}
	whole, _ := views.Merged(h.State, ipWeft, desired.DetailObjects, everything, map[string]struct{}{"s": {}, "none": {}})
	if len(whole.Chains) != 0 || len(whole.Sets) != 1 {
		t.Fatalf("by name there are %d chains and the sets %+v: want the set alone", len(whole.Chains), whole.Sets)
	}
	all := slices.Collect(whole.Sets[0].Elements.Sorted())
	if seen, others := m.Sets[0].Elements.Divide(m.Sets[0].Decl, all); !slices.Equal(seen, all[:2]) || !slices.Equal(others, all[2:]) {
		t.Errorf("the reader sees %v and not %v: want its own two of %v", seen, others, all)
	}
	if m, exists := views.Merged(h.State, ipDeny, desired.DetailElements, reader, nil); m != nil || !exists {
		t.Errorf("another's table: %+v, exists %t; want nothing of a table that exists", m, exists)
	}
	if m, exists := views.Merged(h.State, ipWeft, desired.DetailElements, desired.Reader{}, nil); m != nil || !exists {
		t.Errorf("without a reader it is %+v", m)
	}
	if m, _ := views.Merged(h.State, ipWeft, desired.DetailElements, everything, nil); len(m.Chains) != 2 || len(m.Sets) != 2 || len(slices.Collect(m.Sets[1].Elements.Sorted())) != 3 {
		t.Errorf("all of the table is %+v", m)
	}
}

// BenchmarkPatchBesideReaders is what the writer spends on one element of 110,000, without a
// view and with a new view each time.
func BenchmarkPatchBesideReaders(b *testing.B) {
	for _, readers := range []int{0, 1} {
		b.Run(fmt.Sprintf("readers=%d", readers), func(b *testing.B) {
			s := merge.New()
			u := cluster(10_000, 10)
			if err := s.Apply(u); err != nil {
				b.Fatal(err)
			}
			planner.Accept(s)
			elements := u.Tables[0].PutSets[1].Elements
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				for range readers {
					views.Merged(s, ipWeft, desired.DetailElements, everything, nil)
				}
				e := elements[i%len(elements)]
				e.Data = elements[(i+1)%len(elements)].Data
				if err := s.Apply(patch(services, in(ipWeft, desired.Elements{Set: "endpoints", Add: []nftset.Element{e}}))); err != nil {
					b.Fatal(err)
				}
				planner.Make(s)
				planner.Accept(s)
			}
		})
	}
}
