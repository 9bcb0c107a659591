package services

import (
	"context"
	"log/slog"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

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
