package conntrack

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ti-mo/conntrack"
)

const (
	// benchFlows is half of the flows of the benchmarks: as many of UDP and of TCP.
	benchFlows    = 100_000
	benchVIPs     = 100
	benchBackends = 10
)

// benchVIP is the destination of flow number i, benchBackend its backend.
func benchVIP(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 96, byte(i / benchVIPs % 256), byte(i % benchVIPs)}), 53)
}

func benchBackend(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, 1, byte(i / benchVIPs % benchBackends)}), 5353)
}

// newBenchNode returns a node with 100,000 UDP flows to 100 destinations with ten
// backends each, and 100,000 TCP flows.
func newBenchNode(b *testing.B) *node {
	b.Helper()
	n := newNode(b)
	for i := range benchFlows {
		for _, proto := range []uint8{17, 6} {
			if err := n.inject(proto, i, benchVIP(i%benchVIPs), benchBackend(i)); err != nil {
				b.Fatal(err)
			}
		}
	}
	return n
}

// BenchmarkFlush200k is one pass over 200,000 flows. The floor is a dump of the same
// table that matches nothing: the kernel walks all of it either way. ms and floor-ms
// are medians, msgs what came to user space in one pass, gone what it removed.
func BenchmarkFlush200k(b *testing.B) {
	n := newBenchNode(b)
	gone := []netip.AddrPort{benchBackend(benchVIPs)}
	// every names destinations, most without flows, as a commit of a rolling update does.
	every := func(destinations int, port func(i int) uint16, lost func(i int) netip.AddrPort) []Change {
		out := make([]Change, destinations)
		for i := range out {
			out[i] = Change{Addr: benchVIP(i).Addr(), Port: port(i), Removed: []netip.AddrPort{lost(i)}}
		}
		return out
	}
	dnsPort := func(int) uint16 { return 53 }
	anyPort := func(i int) uint16 { return 53 + uint16(i/benchVIPs) } //nolint:gosec // a small number
	nobody := func(i int) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 2, byte(i >> 8), byte(i)}), 1024+uint16(i)) //nolint:gosec // a port
	}
	for _, bb := range []struct {
		name  string
		stale []Change
		// again are the flows to make again after a pass.
		again func(i int) bool
	}{
		{"one backend of one destination", []Change{{Addr: benchVIP(7).Addr(), Port: 53, Removed: gone}},
			func(i int) bool { return i%benchVIPs == 7 && benchBackend(i) == gone[0] }},
		{"one backend of 100 destinations", every(benchVIPs, dnsPort, func(int) netip.AddrPort { return gone[0] }),
			func(i int) bool { return benchBackend(i) == gone[0] }},
		{"one backend of one destination, no flows", []Change{{Addr: benchVIP(7).Addr(), Port: 53, Removed: aps("10.1.0.99:5353")}}, nil},
		{"one destination with all backends", []Change{{Addr: benchVIP(7).Addr(), Port: 53, First: true, Removed: aps("10.1.0.98:1", "10.1.0.99:5353")}}, nil},
		{"one backend of 1000 destinations, no flows", every(1000, anyPort, func(int) netip.AddrPort { return ap("10.1.0.99:5353") }), nil},
		{"1000 destinations with nothing in common", every(1000, anyPort, nobody), nil},
		{"1000 destinations with a common port", every(1000, dnsPort, nobody), nil},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			var took, floor []time.Duration
			read, deleted := uint64(0), 0
			for b.Loop() {
				b.StopTimer()
				floor = append(floor, n.emptyDump(b))
				before := n.conn.read.Load()
				b.StartTimer()
				began := time.Now()
				d, err := n.conn.Flush(b.Context(), bb.stale)
				took = append(took, time.Since(began))
				b.StopTimer()
				if err != nil {
					b.Fatal(err)
				}
				read, deleted = n.conn.read.Load()-before, d
				for i := range benchFlows {
					if bb.again != nil && bb.again(i) {
						if err := n.inject(17, i, benchVIP(i%benchVIPs), benchBackend(i)); err != nil {
							b.Fatal(err)
						}
					}
				}
				b.StartTimer()
			}
			reportPasses(b, took, floor, read, deleted)
		})
	}
}

// BenchmarkReconcile200k compares all 200,000 flows with where they may go, as a start
// does: every UDP flow comes to user space.
func BenchmarkReconcile200k(b *testing.B) {
	n := newBenchNode(b)
	var backends []netip.AddrPort
	for i := range benchBackends {
		backends = append(backends, benchBackend(i*benchVIPs))
	}
	for _, services := range []int{0, benchVIPs, 10_000} {
		b.Run(fmt.Sprintf("%d destinations", services), func(b *testing.B) {
			var live []Destination
			for i := range services {
				live = append(live, Destination{Addr: benchVIP(i).Addr(), Port: 53, Backends: backends})
			}
			b.ReportAllocs()
			var took, floor []time.Duration
			read := uint64(0)
			for b.Loop() {
				b.StopTimer()
				floor = append(floor, n.emptyDump(b))
				before := n.conn.read.Load()
				b.StartTimer()
				began := time.Now()
				d, err := n.conn.Reconcile(b.Context(), live)
				took = append(took, time.Since(began))
				if d != 0 || err != nil {
					b.Fatalf("Reconcile = %d, %v; want 0", d, err)
				}
				read = n.conn.read.Load() - before
			}
			reportPasses(b, took, floor, read, 0)
		})
	}
}

// emptyDump returns how long the kernel takes to find no flow.
func (n *node) emptyDump(b *testing.B) time.Duration {
	b.Helper()
	req, err := dumpRequest(filter{family: familyIPv4, to: endOf(ap("203.0.113.1:9"))})
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	if _, err := n.conn.dump.Send(req); err != nil {
		b.Fatal(err)
	}
	msgs, err := n.conn.dump.Receive()
	if err != nil || len(msgs) != 0 {
		b.Fatalf("empty dump: %d messages, %v", len(msgs), err)
	}
	return time.Since(began)
}

func reportPasses(b *testing.B, took, floor []time.Duration, read uint64, deleted int) {
	b.Helper()
	median := func(d []time.Duration) float64 {
		slices.Sort(d)
		return d[len(d)/2].Seconds() * 1000
	}
	b.ReportMetric(median(took), "ms")
	b.ReportMetric(median(floor), "floor-ms")
	b.ReportMetric(median(took)/median(floor), "x-floor")
	b.ReportMetric(float64(read), "msgs")
	b.ReportMetric(float64(deleted), "gone")
	b.ReportMetric(0, "ns/op")
}

// inject creates the entry of flow number i to a destination, translated to a backend.
func (n *node) inject(proto uint8, i int, to, backend netip.AddrPort) error {
	src := netip.AddrFrom4([4]byte{192, 0, 3, byte(i >> 14)})
	f := conntrack.NewFlow(proto, conntrack.StatusConfirmed|conntrack.StatusAssured|conntrack.StatusDstNATDone,
		src, to.Addr(), uint16(1024+i&0x3fff), to.Port(), 3600, 0) //nolint:gosec // a port
	f.TupleReply.IP.SourceAddress = backend.Addr()
	f.TupleReply.Proto.SourcePort = backend.Port()
	if proto == 6 {
		f.ProtoInfo.TCP = &conntrack.ProtoInfoTCP{State: 3}
	}
	return n.list.Create(f)
}

// BenchmarkList200k lists of 200,000 entries those of one address, which the kernel looks for, those
// of many, and all.
func BenchmarkList200k(b *testing.B) {
	n := newBenchNode(b)
	many := make([]netip.Addr, 100)
	for i := range many {
		many[i] = netip.AddrFrom4([4]byte{10, 2, 0, byte(i)})
	}
	for _, bb := range []struct {
		name string
		s    *Selection
	}{{"one address", Select([]netip.Addr{benchBackend(0).Addr()})}, {"none of four", Select(many[:4])}, {"none of 100", Select(many)}, {"all", SelectAll()}} {
		b.Run(bb.name, func(b *testing.B) {
			entries := 0
			b.ReportAllocs()
			for b.Loop() {
				entries = 0
				if err := n.conn.List(b.Context(), bb.s, func(*Entry) error { entries++; return nil }); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(entries), "entries")
		})
	}
}
