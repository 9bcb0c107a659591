package aggregator_test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// stickyNode is a namespace in which clients, a VIP and backends are addresses of
// loopback.
type stickyNode struct{ ns *nfttest.NS }

func newStickyNode(t testing.TB) *stickyNode {
	t.Helper()
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	n := &stickyNode{ns: nfttest.New(t)}
	n.do(t, func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		for _, cidr := range []string{"10.1.0.1/32", "10.1.0.2/32", "10.1.0.3/32", "10.9.0.0/16"} {
			addr, err := netlink.ParseAddr(cidr)
			if err != nil {
				return err
			}
			if err := netlink.AddrAdd(lo, addr); err != nil {
				return err
			}
		}
		_, vips, err := net.ParseCIDR("10.96.0.0/16")
		if err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{LinkIndex: lo.Attrs().Index, Dst: vips})
	})
	for i := range 3 {
		n.serve(t, fmt.Sprintf("10.1.0.%d:8080", i+1))
	}
	return n
}

func (n *stickyNode) do(t testing.TB, f func() error) {
	t.Helper()
	must(t, n.ns.Do(f))
}

// serve answers with its own address until the test ends.
func (n *stickyNode) serve(t testing.TB, addr string) {
	t.Helper()
	var conn net.PacketConn
	n.do(t, func() (err error) {
		conn, err = net.ListenPacket("udp", addr)
		return err
	})
	done := make(chan struct{})
	t.Cleanup(func() { _ = conn.Close(); <-done })
	go func() {
		defer close(done)
		buf := make([]byte, 64)
		for {
			_, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo([]byte(addr), from)
		}
	}()
}

// ask makes a new connection of a client to the VIP, and returns the backend that
// answers.
func (n *stickyNode) ask(t testing.TB, client string) string {
	t.Helper()
	var backend string
	n.do(t, func() error {
		dialer := net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(client)}}
		conn, err := dialer.Dial("udp4", "10.96.0.1:53")
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		if err := conn.SetDeadline(time.Now().Add(3 * time.Minute)); err != nil {
			return err
		}
		if _, err := conn.Write([]byte("?")); err != nil {
			return err
		}
		buf := make([]byte, 64)
		size, err := conn.Read(buf)
		backend = strings.TrimSuffix(string(buf[:size]), ":8080")
		return err
	})
	return backend
}

// entries are those of the map in the kernel, as "client : backend".
func (n *stickyNode) entries(t testing.TB) []string {
	t.Helper()
	var out []string
	text := n.ns.Run(t, "nft", "list", "map", "ip", "demo", "affinity")
	_, text, _ = strings.Cut(text, "elements = {")
	text, _, _ = strings.Cut(text, "}")
	for _, e := range strings.Split(text, ",") {
		words := strings.Fields(e)
		if len(words) < 4 {
			continue
		}
		out = append(out, words[0]+" : "+words[len(words)-3])
	}
	slices.Sort(out)
	return out
}

// wantEntries waits until the map has just these entries.
func (n *stickyNode) wantEntries(t testing.TB, want map[string]string) {
	t.Helper()
	var all []string
	for client, backend := range want {
		all = append(all, client+" : "+backend)
	}
	slices.Sort(all)
	aggregatortest.Eventually(t, fmt.Sprintf("the entries are %q", all), func() bool { return slices.Equal(n.entries(t), all) })
}

// TestAffinityWithPackets has clients make their entries by sending, and takes a
// backend away: its clients pick anew, all others stay where they are, also when
// the daemon is killed and comes back, with the kernel's protection of tables and
// without.
//
// Behaviour: 77, 80, 81.
func TestAffinityWithPackets(t *testing.T) {
	for _, noOwner := range []bool{false, true} {
		t.Run(fmt.Sprintf("without ownership %t", noOwner), func(t *testing.T) {
			n := newStickyNode(t)
			cfg := aggregator.Config{StateDir: t.TempDir(), Retry: 20 * time.Millisecond}
			d, conn := startKernel(t, n.ns, cfg, noOwner)
			mustApply(t, d.Dial(t, "tester"), sticky("10.1.0.1", "10.1.0.2"))
			chosen := map[string]string{}
			for i := range 10 {
				client := fmt.Sprintf("10.9.0.%d", i+1)
				chosen[client] = n.ask(t, client)
				for range 2 { // with the first an odd number: the next client begins with the other backend
					if got := n.ask(t, client); got != chosen[client] {
						t.Fatalf("client %s was sent to %s and then to %s", client, chosen[client], got)
					}
				}
			}
			n.wantEntries(t, chosen)

			// As after kill -9.
			must(t, conn.Close())
			// The kernel also closes the state directory.
			_ = d.Stop()
			d, conn = startKernel(t, n.ns, cfg, noOwner)
			generation, err := conn.Generation()
			must(t, err)
			mustApply(t, d.Dial(t, "tester"), sticky("10.1.0.1", "10.1.0.2"))
			n.wantEntries(t, chosen)
			if now, err := conn.Generation(); err != nil || now != generation {
				t.Fatalf("generation %d became %d (%v): the restart must not commit", generation, now, err)
			}

			mustApply(t, d.Dial(t, "tester"), sticky("10.1.0.2", "10.1.0.3"))
			for client, backend := range chosen {
				if backend == "10.1.0.1" {
					delete(chosen, client)
				}
			}
			if len(chosen) == 0 || len(chosen) == 10 {
				t.Fatalf("%d clients are left: the test does not test", len(chosen))
			}
			n.wantEntries(t, chosen)
			for i := range 10 {
				client := fmt.Sprintf("10.9.0.%d", i+1)
				got := n.ask(t, client)
				if was, ok := chosen[client]; got == "10.1.0.1" || ok && got != was {
					t.Errorf("client %s of %q is sent to %s", client, was, got)
				}
				chosen[client] = got
			}
			n.wantEntries(t, chosen)
		})
	}
}

// TestRepairKeepsAffinity damages the table as a foreign hand would, on a kernel
// that cannot keep it away: the repair leaves what packets have made alone.
//
// Behaviour: 80.
func TestRepairKeepsAffinity(t *testing.T) {
	n := newStickyNode(t)
	d, _ := startKernel(t, n.ns, aggregator.Config{Retry: 20 * time.Millisecond}, true)
	mustApply(t, d.Dial(t, "tester"), sticky("10.1.0.1", "10.1.0.2"))
	chosen := map[string]string{}
	for i := range 6 {
		client := fmt.Sprintf("10.9.0.%d", i+1)
		chosen[client] = n.ask(t, client)
	}
	before := rulesOf(t, n)
	for _, args := range [][]string{
		{"flush", "chain", "ip", "demo", "remember-10-1-0-1"},
		{"flush", "chain", "ip", "demo", "output"},
		{"add", "rule", "ip", "demo", "remember-10-1-0-2", "counter"},
	} {
		n.ns.Run(t, "nft", args...)
		aggregatortest.Eventually(t, "what nft "+strings.Join(args, " ")+" did is repaired", func() bool { return rulesOf(t, n) == before })
		n.wantEntries(t, chosen)
	}
	for client, backend := range chosen {
		if got := n.ask(t, client); got != backend {
			t.Errorf("client %s was sent to %s and is now to %s", client, backend, got)
		}
	}
	// An entry that no rule makes is found by the repair that reads the map anyway.
	n.ns.Run(t, "nft", "add", "element", "ip", "demo", "affinity", "{ 10.9.0.99 : 10.1.0.99 . 8080 }")
	n.wantEntries(t, chosen)
}

// rulesOf lists the table without the elements of its maps.
func rulesOf(t testing.TB, n *stickyNode) string {
	t.Helper()
	return n.ns.Run(t, "nft", "-t", "list", "table", "ip", "demo")
}

// gatedKernel lets the reading of a map wait.
type gatedKernel struct {
	*kernel.Conn
	gate chan struct{}
}

func (k *gatedKernel) DumpSet(id nft.TableID, set *set.Set) ([]set.Element, error) {
	<-k.gate
	return k.Conn.DumpSet(id, set)
}

// TestFlowsThatFollowAnEntry has a UDP client send after its backend's flows were
// removed, and before its affinity entry was: what it sends follows the entry to the
// backend that has gone. That flow goes with the entry.
//
// Behaviour: 81, 106.
func TestFlowsThatFollowAnEntry(t *testing.T) {
	n := newFlowNode(t)
	conn, err := kernel.Open(kernel.Config{NetNS: n.ns.FD()})
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	k := &gatedKernel{Conn: conn, gate: make(chan struct{})}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, Flows: n.conn}})
	c := d.Dial(t, "tester")
	publish := func(backend string) {
		t.Helper()
		f := sticky(backend)
		f.Tables[0].Maps = append(f.Tables[0].Maps, fronts("10.96.0.1 . udp . 53 . 0 : " + backend + " . 8080").Tables[0].Maps...)
		mustApply(t, c, f)
	}
	publish("10.1.0.1")
	n.send(t, 4001, "10.96.0.1:53", true)
	n.wantFlows(t, flow1)
	publish("10.1.0.2")
	aggregatortest.Eventually(t, "the old flow is removed", func() bool { return len(n.flows(t)) == 0 })
	n.send(t, 4001, "10.96.0.1:53", true)
	n.wantFlows(t, flow1)
	close(k.gate)
	aggregatortest.Eventually(t, "what followed the entry is removed", func() bool { return len(n.flows(t)) == 0 })
	n.send(t, 4001, "10.96.0.1:53", true)
	n.wantFlows(t, "udp 4001 -> 10.96.0.1:53 = 10.1.0.2:8080")
	n.wantEntries(t, map[string]string{"10.9.0.1": "10.1.0.2"})
}
