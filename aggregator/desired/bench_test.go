package desired_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/nft/compile"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// cluster is the snapshot of a number of services with some endpoints each,
// every other one UDP, as the Service frontend publishes them.
func cluster(count, endpoints int) *desired.Update {
	vips := make([]nftset.Element, 0, count)
	slots := make([]nftset.Element, 0, count*endpoints)
	chain := fmt.Sprintf("pick-%d", endpoints)
	for i := range count {
		proto := []byte{6, 17}[i%2]
		vip := vipOf(i)
		vips = append(vips, leads(dest(vip, proto, 80), chain))
		for j := range endpoints {
			slots = append(slots, endpoint(vip, proto, 80, uint32(j), backendOf(i, j)))
		}
	}
	pick := regular(chain, rule("dnat to numgen random mod N map @endpoints", "@endpoints"))
	entry := base("prerouting", -100, rule("dest vmap @services", "@services"))
	return snapshot(services, 0, in(ipWeft, verdictMap("services", vips...), endpointMap("endpoints", slots...), pick, entry))
}

func vipOf(i int) string { return ipv4(10<<24 | 96<<16 | uint32(i)) }

func backendOf(i, j int) string { return ipv4(10<<24|1<<16+uint32(i*16+j)) + ":8080" }

func ipv4(n uint32) string {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], n)
	return netip.AddrFrom4(b).String()
}

func BenchmarkSnapshot(b *testing.B) {
	for _, count := range []int{10, 100, 1_000, 10_000} {
		b.Run(fmt.Sprintf("services=%d", count), func(b *testing.B) {
			u := cluster(count, 10)
			b.ReportAllocs()
			for b.Loop() {
				s := merge.New()
				if err := s.Apply(u); err != nil {
					b.Fatal(err)
				}
				planner.Make(s)
				planner.Accept(s)
			}
		})
	}
}

// BenchmarkMaps is the part of BenchmarkSnapshot that cannot be spared: the
// elements in maps.
func BenchmarkMaps(b *testing.B) {
	u := cluster(10_000, 10)
	b.ReportAllocs()
	for b.Loop() {
		for _, p := range u.Tables[0].PutSets {
			m := make(map[string]nftset.Element, len(p.Elements))
			for i := range p.Elements {
				m[p.Elements[i].Key] = p.Elements[i]
			}
		}
	}
}

func BenchmarkSameSnapshot(b *testing.B) {
	u := cluster(10_000, 10)
	s := merge.New()
	if err := s.Apply(u); err != nil {
		b.Fatal(err)
	}
	planner.Accept(s)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Apply(u); err != nil {
			b.Fatal(err)
		}
		if p := planner.Make(s); !noOps(p) {
			b.Fatal(planText(p))
		}
		planner.Accept(s)
	}
}

func BenchmarkReplaceEndpoint(b *testing.B) {
	for _, count := range []int{10, 100, 1_000, 10_000} {
		b.Run(fmt.Sprintf("services=%d", count), func(b *testing.B) {
			u := cluster(count, 10)
			s := merge.New()
			if err := s.Apply(u); err != nil {
				b.Fatal(err)
			}
			planner.Accept(s)
			d := u.Tables[0].PutSets[1].Decl
			var patches [2]*desired.Update
			for i := range patches {
				e := endpoint(vipOf(7), 17, 80, 3, backendOf(7, 3+i*9))
				patches[i] = patch(services, in(ipWeft, desired.Elements{Set: "endpoints", Decl: d, Add: []nftset.Element{e}}))
			}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				n++
				if err := s.Apply(patches[n%2]); err != nil {
					b.Fatal(err)
				}
				if p := planner.Make(s); len(p.Ops) != 2 || len(p.Stale) != 1 {
					b.Fatal(planText(p))
				}
				planner.Accept(s)
			}
		})
	}
}

// BenchmarkChangeRule replaces a rule in the middle of a chain of 10,000.
func BenchmarkChangeRule(b *testing.B) {
	rules := make([]*compile.Rule, 10_000)
	for i := range rules {
		rules[i] = rule(fmt.Sprintf("rule %d", i))
	}
	other := append([]*compile.Rule(nil), rules...)
	other[5_000] = rule("other")
	updates := []*desired.Update{
		patch(policy, in(ipDeny, regular("long", rules...))),
		patch(policy, in(ipDeny, regular("long", other...))),
	}
	s := merge.New()
	if err := s.Apply(snapshot(policy, 0, in(ipDeny, regular("long", rules...)))); err != nil {
		b.Fatal(err)
	}
	planner.Accept(s)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		if err := s.Apply(updates[n%2]); err != nil {
			b.Fatal(err)
		}
		if p := planner.Make(s); len(p.Ops) != 2 {
			b.Fatal(len(p.Ops))
		}
		planner.Accept(s)
	}
}

// BenchmarkReplaceAll replaces all elements of a set of 100,000 by others: what a
// publisher that sends everything anew costs the writer.
func BenchmarkReplaceAll(b *testing.B) {
	var updates [2]*desired.Update
	for turn := range updates {
		var elems []nftset.Element
		for i := range 100_000 {
			elems = append(elems, member(fmt.Sprintf("%d.%d.%d.%d", 10+turn, i>>16, i>>8&255, i&255)))
		}
		updates[turn] = snapshot(desired.Key{Publisher: "a", Name: "list"}, 0, in(ipWeft, addrSet("blocked", elems...)))
	}
	s := merge.New()
	if err := s.Apply(updates[1]); err != nil {
		b.Fatal(err)
	}
	planner.Accept(s)
	b.ReportAllocs()
	turn := 0
	for b.Loop() {
		if err := s.Apply(updates[turn]); err != nil {
			b.Fatal(err)
		}
		if p := planner.Make(s); p.Counts.ElementsAdded != 100_000 || p.Counts.ElementsDeleted != 100_000 {
			b.Fatalf("plan %+v", p.Counts)
		}
		planner.Accept(s)
		turn = 1 - turn
	}
}
