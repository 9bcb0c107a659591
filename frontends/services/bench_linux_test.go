package services

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/frontends/services/source"
	"github.com/weft-proxy/weft/nft/nfttest"
)

// Sizes of BenchmarkEventToCommit.
const (
	benchServices  = 1000
	benchEndpoints = 10
)

// benchService is Service i with one TCP port.
func benchService(i int) source.Event {
	e := setService(fmt.Sprintf("s%d", i), 0, fmt.Sprintf("10.96.%d.%d", i/250, i%250+1)).(source.ServiceSet)
	e.Service.Spec.Ports = e.Service.Spec.Ports[:1]
	return e
}

// benchSlice has the endpoints of Service i; one of them is another one each turn.
func benchSlice(i, turn int) source.Event {
	addrs := make([]string, benchEndpoints)
	for j := range addrs {
		addrs[j] = fmt.Sprintf("10.%d.%d.%d", 100+j, i/250, i%250+1)
	}
	if turn > 0 {
		addrs[turn%benchEndpoints] = fmt.Sprintf("10.200.%d.%d", turn/250%250, turn%250+1)
	}
	e := setSlice(fmt.Sprintf("s%d", i), ipv4, addrs...).(source.SliceSet)
	e.Slice.Ports = e.Slice.Ports[:1]
	return e
}

// waiting hands on what is observed.
type waiting chan time.Duration

func (w waiting) Observe(v float64) { w <- time.Duration(v * float64(time.Second)) }

// BenchmarkEventToCommit replaces one endpoint of 1,000 Services with 10 each: from
// the arrival of the EndpointSlice's event to the acknowledged commit, through
// model, rendering, socket, aggregator and kernel. What weft_services_event_to_commit_seconds
// observes is reported.
func BenchmarkEventToCommit(b *testing.B) {
	s := newStack(b, nfttest.New(b))
	s.aggregator(b)
	first := make([]source.Event, 0, 2*benchServices)
	for i := range benchServices {
		first = append(first, benchService(i), benchSlice(i, 0))
	}
	src := newScript(first...)
	f, err := New(Config{Source: src, NodeName: "node-1", Socket: s.socket, MinSyncPeriod: -1})
	if err != nil {
		b.Fatal(err)
	}
	seen := make(waiting, 1)
	f.metrics.latency = seen
	start(b, f)
	snapshot := <-seen
	took := make([]time.Duration, 0, b.N)
	turn := 0
	for b.Loop() {
		turn++
		src.deliver(benchSlice(turn*7%benchServices, turn))
		took = append(took, <-seen)
	}
	b.StopTimer()
	last := fmt.Sprintf(": 10.200.%d.%d . 8080", turn/250%250, turn%250+1)
	if !strings.Contains(s.ns.ListRuleset(b), last) {
		b.Errorf("the kernel does not have %q", last)
	}
	slices.Sort(took)
	quantile := func(q float64) float64 { return float64(took[int(q*float64(len(took)-1))].Microseconds()) }
	b.ReportMetric(quantile(0.5), "p50-µs")
	b.ReportMetric(quantile(0.99), "p99-µs")
	b.ReportMetric(float64(snapshot.Microseconds()), "first-µs")
}
