package client

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

func TestSplitJoinsToTheSame(t *testing.T) {
	f := &weftv1.Fragment{Name: "f", Priority: 7, Lifetime: weftv1.Lifetime_LIFETIME_SESSION}
	for i := range 3 {
		table := &weftv1.Table{Family: "ip", Name: fmt.Sprintf("t%d", i), Comment: "c", ConntrackMaps: []string{"m"}, AffinityMaps: []string{"a"}}
		table.Chains = []*weftv1.Chain{{Name: "a", Rules: make([]*weftv1.Rule, 300)}, {Name: "b"}}
		for j := range table.Chains[0].Rules {
			table.Chains[0].Rules[j] = &weftv1.Rule{Text: fmt.Sprintf("tcp dport %d drop", j+1)}
		}
		set := &weftv1.Set{Name: "s", Type: "ipv4_addr", Flags: []string{"interval"}, Comment: "c"}
		for j := range 9000 {
			set.Elements = append(set.Elements, &weftv1.Element{Key: fmt.Sprintf("10.%d.%d.%d", i, j>>8, j&255)})
		}
		table.Sets = []*weftv1.Set{set}
		table.Maps = []*weftv1.Set{{Name: "m", Type: "ipv4_addr : verdict", Elements: []*weftv1.Element{{Key: "10.0.0.1", Value: "drop"}}}}
		f.Tables = append(f.Tables, table)
	}
	joined := &weftv1.Fragment{}
	n, last := 0, false
	for part := range split(f, 5) {
		if last {
			t.Fatal("a part after the last")
		}
		n++
		last = !part.GetMore()
		s := part.GetSnapshot()
		if part.GetId() != 5 || s.GetName() != "f" || s.GetPriority() != 7 || s.GetLifetime() != f.GetLifetime() {
			t.Fatalf("part %d has the head %v %v", n, part.GetId(), s)
		}
		if got := weigh(s); got > partWeight+301*ruleWeight {
			t.Fatalf("part %d weighs %d", n, got)
		}
		join(joined, s)
	}
	if !last || n < 7 {
		t.Fatalf("%d parts, the last marked: %v", n, last)
	}
	if !proto.Equal(f, joined) {
		t.Fatal("the parts do not add up to the fragment")
	}
	small := &weftv1.Fragment{Name: "small", Tables: []*weftv1.Table{{Name: "t"}}}
	for part := range split(small, 1) {
		if part.GetMore() || part.GetSnapshot() != small {
			t.Fatalf("small fragment is sent as %v", part)
		}
	}
}

// join does what the aggregator does with parts.
func join(f, part *weftv1.Fragment) {
	f.Name, f.Priority, f.Lifetime = part.GetName(), part.GetPriority(), part.GetLifetime()
	for _, pt := range part.GetTables() {
		var table *weftv1.Table
		for _, t := range f.GetTables() {
			if t.GetName() == pt.GetName() {
				table = t
			}
		}
		if table == nil {
			table = &weftv1.Table{Family: pt.GetFamily(), Name: pt.GetName(), Comment: pt.GetComment(), ConntrackMaps: pt.GetConntrackMaps(), AffinityMaps: pt.GetAffinityMaps()}
			f.Tables = append(f.Tables, table)
		}
		table.Chains = append(table.Chains, pt.GetChains()...)
		table.Sets = joinSets(table.GetSets(), pt.GetSets())
		table.Maps = joinSets(table.GetMaps(), pt.GetMaps())
	}
}

func joinSets(sets, parts []*weftv1.Set) []*weftv1.Set {
next:
	for _, p := range parts {
		for _, s := range sets {
			if s.GetName() == p.GetName() {
				s.Elements = append(s.Elements, p.GetElements()...)
				continue next
			}
		}
		sets = append(sets, proto.CloneOf(p))
	}
	return sets
}
