package desired_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// heap returns the bytes of the heap that are in use.
func heapBytes() int {
	// Twice: the first one finishes what the last one has left to sweep.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc) //nolint:gosec // less than there is memory
}

// received copies an update as it comes out of a request: each element has bytes
// of its own.
func received(u *desired.Update) *desired.Update {
	again := *u
	again.Tables = append([]desired.TableUpdate(nil), u.Tables...)
	for i := range again.Tables {
		t := &again.Tables[i]
		t.PutSets = append([]desired.Set(nil), t.PutSets...)
		for j := range t.PutSets {
			p := &t.PutSets[j]
			p.Elements = append([]nftset.Element(nil), p.Elements...)
			for k := range p.Elements {
				e := &p.Elements[k]
				packed := strings.Clone(e.Key + e.Data)
				e.Key, e.Data = packed[:len(e.Key)], packed[len(e.Key):]
			}
		}
	}
	return &again
}

// BenchmarkHeap prints what a State holds per element once a snapshot of 10,000
// services with 10 endpoints is committed, and after each endpoint was replaced. The
// half of the services that is UDP is in the index of backends too.
func BenchmarkHeap(b *testing.B) {
	const count, endpoints = 10_000, 10
	u := cluster(count, endpoints)
	n := float64(count * (endpoints + 1))
	for b.Loop() {
		before := heapBytes()
		s := merge.New()
		if err := s.Apply(received(u)); err != nil {
			b.Fatal(err)
		}
		planner.Accept(s)
		b.ReportMetric(float64(heapBytes()-before)/n, "snapshot-B/element")
		elements := u.Tables[0].PutSets[1].Elements
		for i := range elements {
			e := nftset.Element{Key: strings.Clone(elements[i].Key), Data: strings.Clone(elements[len(elements)-1-i].Data)}
			p := patch(services, in(ipWeft, desired.Elements{Set: "endpoints", Add: []nftset.Element{e}}))
			if err := s.Apply(p); err != nil {
				b.Fatal(err)
			}
			planner.Accept(s)
		}
		b.ReportMetric(float64(heapBytes()-before)/n, "replaced-B/element")
		runtime.KeepAlive(s)
	}
	runtime.KeepAlive(u)
	b.ReportMetric(0, "ns/op")
}
