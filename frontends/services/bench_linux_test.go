package services

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// benchSize is a cluster: Services with one TCP port and endpoints each, 100 in an
// EndpointSlice as the controller does it.
type benchSize struct{ services, endpoints int }

// benchSizes are those of the benchmarks.
var benchSizes = []benchSize{{10, 10}, {100, 10}, {1000, 10}, {10_000, 10}, {1, 100_000}}

func (z benchSize) String() string { return fmt.Sprintf("%dx%d", z.services, z.endpoints) }

// sliceSize is how many endpoints a slice has.
const sliceSize = 100

// perService is the number of a Service's slices.
func (z benchSize) perService() int { return (z.endpoints + sliceSize - 1) / sliceSize }

// service is Service i.
func (z benchSize) service(i int) *corev1.Service {
	e := setService(fmt.Sprintf("s%d", i), 0, fmt.Sprintf("10.%d.%d.%d", 96+i/62500, i/250%250, i%250+1))
	e.Spec.Ports = e.Spec.Ports[:1]
	return e
}

// slice is slice k of Service i; from turn 1 on one of its endpoints is another one
// each turn.
func (z benchSize) slice(i, k, turn int) *discoveryv1.EndpointSlice {
	addrs := make([]string, min(sliceSize, z.endpoints-k*sliceSize))
	for j := range addrs {
		n := i*z.endpoints + k*sliceSize + j
		addrs[j] = fmt.Sprintf("10.%d.%d.%d", 128+n/62500, n/250%250, n%250+1)
	}
	if turn > 0 {
		addrs[turn%len(addrs)] = fmt.Sprintf("10.%d.%d.%d", 200+turn/62500%50, turn/250%250, turn%250+1)
	}
	e := setSlice(fmt.Sprintf("s%d", i), ipv4, addrs...)
	e.Name = fmt.Sprintf("s%d-%d", i, k)
	e.Ports = e.Ports[:1]
	return e
}

// all is everything that there is at first.
func (z benchSize) all() []any {
	var out []any
	for i := range z.services {
		out = append(out, z.service(i))
		for k := range z.perService() {
			out = append(out, z.slice(i, k, 0))
		}
	}
	return out
}

// replace is the event of a turn, over all Services and slices in turn.
func (z benchSize) replace(turn int) *discoveryv1.EndpointSlice {
	at := turn * 7 % (z.services * z.perService())
	return z.slice(at/z.perService(), at%z.perService(), turn)
}

// resize takes the last endpoint away in odd turns, of the slice that the next turn
// gives it back to.
func (z benchSize) resize(turn int) *discoveryv1.EndpointSlice {
	at := (turn - 1) / 2 * 7 % (z.services * z.perService())
	e := z.slice(at/z.perService(), at%z.perService(), 0)
	if turn%2 == 1 {
		e.Endpoints = slices.Clip(e.Endpoints[:len(e.Endpoints)-1])
	}
	return e
}

// rig is a running stack whose commits are seen.
type rig struct {
	*stack
	src      *script
	seen     chan time.Duration
	frontend *Frontend
	metrics  *prometheus.Registry
	stop     func()
}

// newRig starts everything and returns when what exists is committed.
func newRig(b testing.TB, events []any) *rig {
	b.Helper()
	r := &rig{stack: newStack(b, nfttest.New(b)), src: newScript(events...), seen: make(chan time.Duration, 1), metrics: prometheus.NewPedanticRegistry()}
	r.log, r.registerer = slog.New(slog.DiscardHandler), r.metrics
	_, stopAggregator := r.aggregator(b)
	f, err := New(Config{Source: r.src, NodeName: "node-1", Socket: r.socket, MinSyncPeriod: -1})
	must(b, err)
	r.frontend = f
	f.metrics.Latency = prometheus.ObserverFunc(func(v float64) {
		select {
		case r.seen <- time.Duration(v * float64(time.Second)):
		default:
		}
	})
	stopFrontend := runUntil(b, f)
	r.stop = func() {
		stopFrontend()
		stopAggregator()
	}
	<-r.seen
	return r
}

// cpu is what this process has used, the kernel's part for it included.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	must(b, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// median sorts what was measured.
func median[T cmp.Ordered](all []T) T {
	slices.Sort(all)
	return all[len(all)/2]
}

// ms is a duration in milliseconds.
func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// BenchmarkStart goes from API objects in memory to the acknowledged commit of
// everything, in one process: model, rendering, socket, aggregator and kernel.
func BenchmarkStart(b *testing.B) {
	for _, z := range benchSizes {
		b.Run(z.String(), func(b *testing.B) {
			b.ReportAllocs()
			events := z.all()
			var wall, used []time.Duration
			for b.Loop() {
				b.StopTimer()
				runtime.GC()
				before, began := cpu(b), time.Now()
				b.StartTimer()
				r := newRig(b, events)
				wall, used = append(wall, time.Since(began)), append(used, cpu(b)-before)
				b.StopTimer()
				if n := strings.Count(r.ns.ListRuleset(b), " : 10."); n != z.services*z.endpoints {
					b.Fatalf("%d endpoints in the kernel, want %d", n, z.services*z.endpoints)
				}
				r.stop()
				b.StartTimer()
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(ms(median(wall)), "ms")
			b.ReportMetric(ms(median(used)), "cpu-ms")
		})
	}
}

// BenchmarkEventToCommit goes from the arrival of an EndpointSlice's event to the
// acknowledged commit, through model, rendering, socket, aggregator and kernel: what
// weft_services_event_to_commit_seconds observes, and the CPU of the process. The
// changes come one by one: at once after each other, or isolated by a pause in which
// caches and threads go cold. What resize takes away it gives back in the next turn.
func BenchmarkEventToCommit(b *testing.B) {
	for _, z := range benchSizes {
		for _, change := range []struct {
			name  string
			event func(int) *discoveryv1.EndpointSlice
		}{{"replace", z.replace}, {"resize", z.resize}} {
			b.Run(fmt.Sprintf("%s/%s", z, change.name), func(b *testing.B) { benchChanges(b, z, change.event, 0) })
		}
	}
	for _, z := range benchSizes[3:] {
		b.Run(z.String()+"/isolated", func(b *testing.B) { benchChanges(b, z, z.replace, 50*time.Millisecond) })
	}
}

func benchChanges(b *testing.B, z benchSize, event func(int) *discoveryv1.EndpointSlice, pause time.Duration) {
	b.ReportAllocs()
	r := newRig(b, z.all())
	runtime.GC()
	var took []time.Duration
	turn := 0
	before := cpu(b)
	for b.Loop() {
		turn++
		r.src.deliver(event(turn))
		took = append(took, <-r.seen)
		if pause > 0 {
			b.StopTimer()
			<-time.After(pause)
			b.StartTimer()
		}
	}
	b.StopTimer()
	used := cpu(b) - before
	r.holds(b, event(turn))
	slices.Sort(took)
	quantile := func(q float64) float64 { return ms(took[int(q*float64(len(took)-1))]) }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(quantile(0.5), "p50-ms")
	b.ReportMetric(quantile(0.99), "p99-ms")
	b.ReportMetric(ms(used)/float64(turn), "cpu-ms")
}

// holds fails unless the kernel has the endpoints of a slice.
func (r *rig) holds(b *testing.B, s *discoveryv1.EndpointSlice) {
	b.Helper()
	rules := r.ns.ListRuleset(b)
	for _, e := range s.Endpoints {
		if want := " : " + netip.MustParseAddr(e.Addresses[0]).String() + " . 8080"; !strings.Contains(rules, want) {
			b.Fatalf("the kernel does not have %q", want)
		}
	}
}

// work returns what every layer has looked at so far: model, rendering and aggregator,
// the dumps that it asked the kernel for among it.
func (r *rig) work(t *testing.T) map[string]float64 {
	t.Helper()
	out := make(map[string]float64)
	out["model"] = float64(statsOf(r.frontend).Work)
	out["render"] = float64(r.frontend.content.Work())
	families, err := r.metrics.Gather()
	must(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "weft_aggregator_work_total" {
				out["aggregator "+m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
			if f.GetName() == "weft_elements_changed_total" {
				out["elements "+m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	return out
}

// TestWorkIsThatOfTheChange sends the same changes to clusters of different sizes,
// through all layers to the kernel, and counts what each layer looks at: it may not depend
// on what else there is. What a change allocates is BenchmarkEventToCommit's, because a
// process also allocates for other reasons.
func TestWorkIsThatOfTheChange(t *testing.T) {
	for _, change := range []struct {
		name  string
		event func(benchSize, int) *discoveryv1.EndpointSlice
	}{{"replace", benchSize.replace}, {"resize", benchSize.resize}} {
		small := workPerChange(t, benchSize{100, 10}, change.event)
		if small["model"] == 0 || small["render"] == 0 || small["aggregator keys"] == 0 || small["aggregator dumps"] != 0 {
			t.Errorf("%s: what a change looks at: %v", change.name, small)
		}
		if large := workPerChange(t, benchSize{10_000, 10}, change.event); !maps.Equal(large, small) {
			t.Errorf("%s: a change in 10,000 Services has %v looked at, in 100 %v", change.name, large, small)
		}
		// Of its own Service, the model passes once over the packed endpoints for each of the twenty changes.
		few, many := workPerChange(t, benchSize{1, 1000}, change.event), workPerChange(t, benchSize{1, 100_000}, change.event)
		for layer, n := range many {
			most := 3 * few[layer]
			if layer == "model" {
				most = few[layer] + 20*(100_000+10)
			}
			if n > most {
				t.Errorf("%s: a change in 100,000 endpoints: %s is %v, in 1,000 %v", change.name, layer, n, few[layer])
			}
		}
	}
}

// workPerChange is what twenty changes look at in a cluster, after some others.
func workPerChange(t *testing.T, z benchSize, event func(benchSize, int) *discoveryv1.EndpointSlice) map[string]float64 {
	t.Helper()
	r := newRig(t, z.all())
	defer r.stop()
	turn := 0
	// An even number, so that all that resize took is back.
	changes := func(n int) {
		for range n {
			turn++
			r.src.deliver(event(z, turn))
			<-r.seen
		}
	}
	const n = 20
	changes(n)
	before := r.work(t)
	changes(n)
	after := r.work(t)
	for k := range after {
		after[k] -= before[k]
	}
	t.Logf("%s: %v", z, after)
	return after
}
