package aggregator_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// largeSets are sets that are staged: their elements, from the first, which is loopback's.
var largeSets = []struct {
	name  string
	set   *weftv1.Set
	n     int
	key   func(i int) string
	match string
}{
	{"addresses", &weftv1.Set{Type: "ipv4_addr"}, 1_000_000, func(i int) string { return listed(0x7f000001, i).String() }, "ip saddr @large"},
	{"ranges", &weftv1.Set{Type: "ipv4_addr", Flags: []string{"interval"}}, 250_000, func(i int) string {
		return fmt.Sprintf("%s-%s", listed(0x7f000001, 3*i), listed(0x7f000002, 3*i))
	}, "ip saddr @large"},
	{"concatenated", &weftv1.Set{Type: "ipv4_addr . inet_service", Flags: []string{"interval"}}, 24_000, func(i int) string {
		return fmt.Sprintf("%s . 9-%d", listed(0x7f000001, i), 20+i%1000)
	}, "ip saddr . udp dport @large"},
}

func listed(first uint32, i int) netip.Addr {
	n := first + uint32(i) //nolint:gosec // small
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

// watched is a kernel that notes its longest transaction.
type watched struct {
	*kernel.Conn
	mu           sync.Mutex
	transactions int
	// longest and total are the kernel's processor time, and wall is the time that passed.
	longest, total, wall time.Duration
}

func (k *watched) Commit(ops []kernel.Op) (kernel.Stats, error) {
	began := time.Now()
	stats, err := k.Conn.Commit(ops)
	took := time.Since(began)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.transactions++
	k.total += stats.Kernel
	k.longest, k.wall = max(k.longest, stats.Kernel), max(k.wall, took)
	return stats, err
}

// BenchmarkLarge commits a fragment with a large set. It reports the kernel's time of the
// longest transaction, which should be less than 100 ms, and fails if packets see a part
// of the set: each pair has the first element and the last.
func BenchmarkLarge(b *testing.B) {
	nfttest.Require(b, nfttest.Namespaces)
	for _, tt := range largeSets {
		b.Run(tt.name, func(b *testing.B) {
			var longest, total, took, wall time.Duration
			transactions, pairs := 0, 0
			for b.Loop() {
				ns := nfttest.New(b)
				conn, err := kernel.Open(kernel.Config{NetNS: ns.FD()})
				if err != nil {
					b.Fatal(err)
				}
				k := &watched{Conn: conn}
				d := aggregatortest.Start(b, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: b.TempDir()}})
				f := &weftv1.Fragment{Name: "large", Tables: []*weftv1.Table{{Family: "ip", Name: "demo",
					Sets: []*weftv1.Set{{Name: "large", Type: tt.set.Type, Flags: tt.set.Flags}},
					Chains: []*weftv1.Chain{{
						Name: "output", Type: "filter", Hook: "output", Priority: "filter",
						Rules: []*weftv1.Rule{{Text: tt.match + " drop"}},
					}},
				}}}
				for i := range tt.n {
					f.Tables[0].Sets[0].Elements = append(f.Tables[0].Sets[0].Elements, &weftv1.Element{Key: tt.key(i)})
				}
				step := 1
				if tt.name == "ranges" {
					step = 3
				}
				last := listed(0x7f000001, step*(tt.n-1))
				ctx, cancel := context.WithCancel(b.Context())
				done := make(chan error, 1)
				go func() {
					defer cancel()
					began := time.Now()
					_, err := d.Aggregator.Apply(ctx, "large", f)
					took += time.Since(began)
					done <- err
				}()
				pairs += sendPairs(ctx, b, ns, listed(0x7f000001, 0), last)
				if err := <-done; err != nil {
					b.Fatal(err)
				}
				longest, wall, total, transactions = max(longest, k.longest), max(wall, k.wall), total+k.total, transactions+k.transactions
				_ = d.Stop()
				_ = conn.Close()
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(longest.Seconds()*1000, "longest-ms")
			b.ReportMetric(longest.Seconds()/0.1, "of-100ms")
			b.ReportMetric(wall.Seconds()*1000, "longest-wall-ms")
			b.ReportMetric(total.Seconds()*1000/float64(b.N), "kernel-ms")
			b.ReportMetric(took.Seconds()*1000/float64(b.N), "took-ms")
			b.ReportMetric(float64(transactions)/float64(b.N), "transactions")
			b.ReportMetric(float64(pairs)/float64(b.N), "pairs")
		})
	}
}

// sendPairs sends packets from two addresses of loopback, in turns, until ctx ends and one
// pair more. Both pass until the rule is in force, and none after. One pair may be in
// between. It returns the number of pairs.
func sendPairs(ctx context.Context, tb testing.TB, ns *nfttest.NS, first, last netip.Addr) (pairs int) {
	tb.Helper()
	var conns [2]*net.UDPConn
	for i, addr := range []netip.Addr{first, last} {
		err := ns.Do(func() (err error) {
			conns[i], err = net.DialUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, 0)), &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9})
			return err
		})
		if err != nil {
			tb.Fatal(err)
		}
		defer func() { _ = conns[i].Close() }()
	}
	dropped := func(c *net.UDPConn) bool {
		_, err := c.Write([]byte("x"))
		if errors.Is(err, syscall.ECONNREFUSED) { // the answer to the packet before
			_, err = c.Write([]byte("x"))
		}
		return errors.Is(err, syscall.EPERM)
	}
	tick := time.NewTicker(200 * time.Microsecond)
	defer tick.Stop()
	before, mixed := false, 0
	for over := false; ; {
		a, z := dropped(conns[0]), dropped(conns[1])
		pairs++
		switch {
		case a && !z, before && !z:
			tb.Fatalf("pair %d: the first is dropped: %t, the last: %t", pairs, a, z)
		case z && !a:
			mixed++
		}
		before = z
		if over {
			if !a || !z || mixed > 1 {
				tb.Fatalf("at the end, the first is dropped: %t, the last: %t; %d pairs were in between", a, z, mixed)
			}
			return pairs
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			over = true
		}
	}
}

// TestLargeUpdateWithPackets stages a set while packets flow.
func TestLargeUpdateWithPackets(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces)
	ns := nfttest.New(t)
	d, _ := startKernel(t, ns, aggregator.Config{}, false)
	f := listOf("large", manyElements)
	f.Tables[0].Sets[0].Elements[0].Key = "127.0.0.1"
	f.Tables[0].Sets[0].Elements[manyElements-1].Key = "127.0.0.2"
	f.Tables[0].Chains[0].Hook = "output"
	ctx, cancel := context.WithCancel(aggregatortest.Context(t))
	done := make(chan error, 1)
	go func() {
		defer cancel()
		_, err := d.Aggregator.Apply(ctx, "large", f)
		done <- err
	}()
	if n := sendPairs(ctx, t, ns, netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")); n < 3 {
		t.Errorf("only %d pairs of packets", n)
	}
	must(t, <-done)
}
