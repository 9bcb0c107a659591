package services

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/frontends/services/traffic"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// scrapeServices is how many Services there are, and scrapeFlows how many entries of conntrack.
const (
	scrapeServices = 10_000
	scrapeFlows    = 100_000
)

// BenchmarkScrape reads the counters of 10,000 Services with ten endpoints each, of which
// 1,000 had connections, as one process with the aggregator:
//
//	cpu-ms      of the process, the kernel's part included
//	commit-ms   median commit of one Service's new endpoint
//	beside-ms   the same beside scrapes without a pause
//	series      what a scrape has
//
// flows=100000 also lists connection tracking.
func BenchmarkScrape(b *testing.B) {
	for _, bb := range []struct {
		name     string
		counters render.Counters
		flows    bool
	}{{"counters=service", render.CountServices, false}, {"counters=endpoint", render.CountEndpoints, false}, {"flows=100000", render.CountNothing, true}} {
		b.Run(bb.name, func(b *testing.B) {
			l, s, p := planeLane(b, laneModel(scrapeServices), bb.counters)
			if bb.flows {
				injectFlows(b, l)
			} else {
				to := l.toServices(1000)
				for to.turn < 1000 {
					if _, err := connections(to); err != nil {
						b.Fatal(err)
					}
				}
			}
			// Each collector reads once, which may outlast some scrapes.
			scrape := func() (series int) {
				c := traffic.New(traffic.Config{Socket: s.socket, Publisher: Publisher, Counters: bb.counters, Flows: bb.flows, Ports: p.r,
					Adopted: func() bool { return false }, Now: time.Now, Logger: s.log})
				defer c.Close()
				reg := prometheus.NewRegistry()
				reg.MustRegister(c)
				for series <= int(render.NumDropReasons) {
					families, err := reg.Gather()
					if err != nil {
						b.Error(err)
						return series
					}
					series = 0
					for _, f := range families {
						series += len(f.GetMetric())
					}
				}
				return series
			}
			series := scrape()
			commit := p.commits(b)
			before := cpu(b)
			for b.Loop() {
				series = scrape()
			}
			spent := cpu(b) - before
			end, ended := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(ended)
				for {
					select {
					case <-end:
						return
					default:
						scrape()
					}
				}
			}()
			beside := p.commits(b)
			close(end)
			<-ended
			b.ReportMetric(ms(spent)/float64(b.N), "cpu-ms")
			b.ReportMetric(ms(commit), "commit-ms")
			b.ReportMetric(ms(beside), "beside-ms")
			b.ReportMetric(float64(series), "series")
		})
	}
}

// commits returns the median of what commits take that give a Service another endpoint.
func (p *plane) commits(b *testing.B) time.Duration {
	b.Helper()
	var took []time.Duration
	for i := range 100 {
		changes := laneModel(1)
		s := changes.Services[0].New
		s.Ports[0].Backends[model.IPv4].Cluster = model.MakeEndpoints(model.Endpoint{Addr: laneEndpoint(1, i%2)})
		began := time.Now()
		p.publish(b, model.Changes{Services: changes.Services})
		took = append(took, time.Since(began))
	}
	return median(took)
}

// injectFlows makes entries of conntrack for connections to the Services.
func injectFlows(b *testing.B, l *lane) {
	b.Helper()
	var lines strings.Builder
	for i := range scrapeFlows {
		to, endpoint := laneService(i%scrapeServices), laneEndpoint(i%scrapeServices, i/scrapeServices)
		from := fmt.Sprintf("10.244.%d.%d", 3+i/50_000, 2+i%200)
		fmt.Fprintf(&lines, "-I -p tcp -s %s -d %s --sport %d --dport %d -r %s -q %s --reply-port-src %d --reply-port-dst %d --state ESTABLISHED -u ASSURED,SEEN_REPLY -t 3600\n",
			from, to.Addr(), 1024+i/200, to.Port(), endpoint.Addr(), from, endpoint.Port(), 1024+i/200)
	}
	file := filepath.Join(b.TempDir(), "flows")
	must(b, os.WriteFile(file, []byte(lines.String()), 0o600))
	l.node.Run(b, "conntrack", "-R", file)
}

// BenchmarkCounterMemory has the kernel's memory for an element, in bytes, of sets and maps as
// the data plane has them: the median over the operations. What else the machine does is in it.
func BenchmarkCounterMemory(b *testing.B) {
	nfttest.Require(b, nfttest.Namespaces, nfttest.NFT)
	const elements = 100_000
	const listener, slot = "ip daddr . meta l4proto . th dport", "ip daddr . meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport"
	for _, bb := range []struct{ name, kind, typeof, counter, format string }{
		{"service-connections", "set", listener, "counter;", `10.%d.%d.%d . tcp . 80 comment "default/service-1234:http"`},
		{"slots", "map", slot, "", "10.%d.%d.%d . tcp . 80 . 0 : 10.244.1.1 . 8080"},
		{"counted-slots", "map", slot, "counter;", "10.%d.%d.%d . tcp . 80 . 0 : 10.244.1.1 . 8080"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			var keys strings.Builder
			for i := range elements {
				fmt.Fprintf(&keys, bb.format+", ", i>>16, i>>8&255, i&255)
			}
			rules := fmt.Sprintf("table ip m {\n%s s {\ntypeof %s; %s\nelements = { %s }\n}\n}\n", bb.kind, bb.typeof, bb.counter, keys.String())
			var took []float64
			for b.Loop() {
				ns := nfttest.New(b)
				before := kernelMemory(b)
				ns.Nft(b, rules)
				took = append(took, float64(kernelMemory(b)-before)/elements)
				ns.Nft(b, "flush ruleset")
			}
			b.ReportMetric(median(took), "B/element")
		})
	}
}

// kernelMemory returns the bytes of the kernel's slabs, per processor memory and tables.
func kernelMemory(b *testing.B) (sum int64) {
	b.Helper()
	f, err := os.Open("/proc/meminfo")
	must(b, err)
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var name string
		var kib int64
		if n, _ := fmt.Sscanf(s.Text(), "%s %d", &name, &kib); n == 2 && slices.Contains([]string{"SUnreclaim:", "Percpu:", "VmallocUsed:"}, name) {
			sum += kib << 10
		}
	}
	return sum
}

// stickyModel has Services with session affinity and one TCP port each.
func stickyModel(services, endpoints int) model.Changes {
	out := model.Changes{Node: thisNode(), ServiceCIDRs: serviceRanges()}
	for i := range services {
		eps := make([]model.Endpoint, endpoints)
		for j := range eps {
			n := i*endpoints + j
			eps[j].Addr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{11, byte(n >> 16), byte(n >> 8), byte(n)}), 8080)
		}
		s := withAffinity(laneServiceOf(i, eps), time.Hour)
		out.Services = append(out.Services, model.Change{Name: s.Name, New: s})
	}
	return out
}

// BenchmarkAffinityLoad publishes Services with session affinity to an empty node, and then
// replaces an endpoint of one. The metrics are the number of chains, rules, sets and elements,
// the time until they are in force, the memory of the kernel and of the process, which is
// renderer, client and aggregator, and the median of 21 replacements until each is in force.
func BenchmarkAffinityLoad(b *testing.B) {
	nfttest.Require(b, nfttest.Namespaces, nfttest.NFT)
	for _, z := range []benchSize{{1_900, 50}, {5_000, 200}} {
		b.Run(z.String(), func(b *testing.B) {
			changes := stickyModel(z.services, z.endpoints)
			for b.Loop() {
				s := newStack(b, nfttest.New(b))
				s.log = slog.New(slog.DiscardHandler)
				_, stop := s.aggregator(b)
				p := newPlane(b, s, func(c *render.Config) { c.Counters = render.CountServices })
				p.r.Load(changes)
				fragment := p.r.Snapshot()
				var chains, rules, sets, elements int
				for _, t := range fragment.GetTables() {
					chains += len(t.GetChains())
					for _, c := range t.GetChains() {
						rules += len(c.GetRules())
					}
					for _, s := range append(t.GetSets(), t.GetMaps()...) {
						sets++
						elements += len(s.GetElements()) + weftv1.CountPacked(s.GetPacked())
					}
				}
				before, began := kernelMemory(b), time.Now()
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
				if _, err := p.session.StartPut(fragment).Wait(ctx); err != nil {
					b.Fatalf("publish: %.200v", err)
				}
				cancel()
				b.ReportMetric(time.Since(began).Seconds(), "load-s")
				b.ReportMetric(float64(kernelMemory(b)-before)/(1<<20), "kernel-MB")
				p.begun = true
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "heap-MB")
				b.ReportMetric(float64(chains), "chains")
				b.ReportMetric(float64(rules), "rules")
				b.ReportMetric(float64(sets), "sets")
				b.ReportMetric(float64(elements), "elements")
				var took []time.Duration
				for i := range 21 {
					to := *changes.Services[7].New
					to.Ports = slices.Clone(to.Ports)
					eps := slices.Collect(to.Ports[0].Backends[model.IPv4].Cluster.All())
					eps[3].Addr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{12, 0, 0, byte(i + 1)}), 8080)
					to.Ports[0].Backends[model.IPv4].Cluster = model.MakeEndpoints(eps...)
					began := time.Now()
					p.put(b, &to)
					took = append(took, time.Since(began))
				}
				b.ReportMetric(ms(median(took)), "replaced-ms")
				stop()
			}
		})
	}
}

// BenchmarkAffinityPackets compares 100 Services with session affinity, of which the client is
// known, and 100 on a node where another Service has it, with as many on a node where none
// has, in the same run: new connections, the first packet of a flow to its answer, and round
// trips on connections that are there. The metrics are of rates, so that less than 1 is what
// affinity costs.
func BenchmarkAffinityPackets(b *testing.B) {
	const services = 100
	for _, bb := range []struct {
		name  string
		drive drive
	}{{"connections", connections}, {"first-packet", firstPackets}, {"established", roundTrips}} {
		b.Run(bb.name, func(b *testing.B) {
			// The first Services are dialed.
			path := func(from, to int) *path {
				changes := laneModel(services + 1)
				for _, c := range changes.Services[from:to] {
					c.New.Affinity = time.Hour
				}
				l, _, _ := planeLane(b, changes, render.CountServices)
				return l.toServices(services)
			}
			m := race(b, lap{bb.drive, path(0, services)}, lap{bb.drive, path(services, services+1)}, lap{bb.drive, path(0, 0)})
			b.ReportMetric(m[0], "ns/op")
			b.ReportMetric(m[2]/m[0], "of-no-affinity")
			b.ReportMetric(m[2]/m[1], "beside-affinity")
		})
	}
}
