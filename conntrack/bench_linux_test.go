package conntrack

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/ti-mo/conntrack"
)

// BenchmarkFlush is one pass over a table of 50,000 UDP flows to 100
// destinations and 50,000 TCP flows.
func BenchmarkFlush(b *testing.B) {
	const flows = 50_000
	n := newNode(b)
	vip := func(i int) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 96, 1, byte(i % 100)}), 53)
	}
	for i := range flows {
		if err := n.inject(17, i, vip(i)); err != nil {
			b.Fatal(err)
		}
		if err := n.inject(6, i, vip(i)); err != nil {
			b.Fatal(err)
		}
	}
	gone := aps("10.1.0.99:5353")
	for _, bb := range []struct {
		name  string
		stale []Stale
	}{
		{"one-destination", []Stale{{Addr: vip(1).Addr(), Port: 53, Gone: gone}}},
		{"many-destinations", func() []Stale {
			// One more port, so that the kernel can't narrow the dump.
			out := []Stale{{Addr: vip(1).Addr(), Port: 54, Gone: gone}}
			for i := range 100 {
				out = append(out, Stale{Addr: vip(i).Addr(), Port: 53, Gone: gone})
			}
			return out
		}()},
	} {
		b.Run(fmt.Sprintf("flows=%d/%s", flows, bb.name), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if deleted, err := n.conn.Flush(b.Context(), bb.stale); deleted != 0 || err != nil {
					b.Fatalf("Flush = %d, %v; want 0", deleted, err)
				}
			}
		})
	}
	b.Run("delete-500", func(b *testing.B) {
		for b.Loop() {
			deleted, err := n.conn.Flush(b.Context(), []Stale{{Addr: vip(7).Addr(), Port: 53, Gone: backend1}})
			if deleted != flows/100 || err != nil {
				b.Fatalf("Flush = %d, %v; want %d", deleted, err, flows/100)
			}
			b.StopTimer()
			for i := 7; i < flows; i += 100 {
				if err := n.inject(17, i, vip(i)); err != nil {
					b.Fatal(err)
				}
			}
			b.StartTimer()
		}
	})
}

// inject creates the entry of flow number i to a destination, translated to
// backend .1.
func (n *node) inject(proto uint8, i int, to netip.AddrPort) error {
	src := netip.AddrFrom4([4]byte{192, 0, 3, byte(i >> 14)})
	f := conntrack.NewFlow(proto, conntrack.StatusConfirmed|conntrack.StatusAssured|conntrack.StatusDstNATDone,
		src, to.Addr(), uint16(1024+i&0x3fff), to.Port(), 3600, 0)
	f.TupleReply.IP.SourceAddress = netip.MustParseAddr("10.1.0.1")
	f.TupleReply.Proto.SourcePort = 5353
	if proto == 6 {
		f.ProtoInfo.TCP = &conntrack.ProtoInfoTCP{State: 3}
	}
	return n.list.Create(f)
}
