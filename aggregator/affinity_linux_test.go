package aggregator_test

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
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
					same(t, "the backend of client "+client, n.ask(t, client), chosen[client])
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
		same(t, "the backend of client "+client, n.ask(t, client), backend)
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

// sticky returns a fragment that sends each client of 10.96.0.1 to one backend and
// remembers to which.
func sticky(backends ...string) *weftv1.Fragment {
	table := &weftv1.Table{
		Family: "ip", Name: "demo",
		Maps: []*weftv1.Set{{
			Name: "affinity", Typeof: "ip saddr : ip daddr . th dport", Flags: []string{"dynamic", "timeout"}, Size: 65536,
			Role: weftv1.MapRole_MAP_ROLE_AFFINITY,
		}},
	}
	var picks []string
	for i, b := range backends {
		name := "remember-" + strings.ReplaceAll(b, ".", "-")
		picks = append(picks, fmt.Sprintf("%d : goto %s", i, name))
		table.Chains = append(table.Chains, &weftv1.Chain{Name: name, Rules: []*weftv1.Rule{
			{Text: "update @affinity { ip saddr timeout 3h : " + b + " . 8080 }"},
			{Text: "meta l4proto { tcp, udp } dnat to ip saddr map @affinity"},
		}})
	}
	pick := &weftv1.Chain{Name: "pick"}
	if len(picks) > 0 {
		pick.Rules = []*weftv1.Rule{{Text: fmt.Sprintf("numgen inc mod %d vmap { %s }", len(picks), strings.Join(picks, ", "))}}
	}
	table.Chains = append(table.Chains, pick, &weftv1.Chain{
		Name: "output", Type: "nat", Hook: "output", Priority: "-100", Rules: []*weftv1.Rule{{Text: "ip daddr 10.96.0.1 udp dport 53 goto pick"}},
	})
	return &weftv1.Fragment{Name: "sticky", Tables: []*weftv1.Table{table}}
}

func wantAffinity(t *testing.T, k *aggregatortest.Kernel, want ...string) {
	t.Helper()
	got := k.Elements(demo, "affinity")
	aggregatortest.Eventually(t, fmt.Sprintf("the entries are %q", want), func() bool {
		got = k.Elements(demo, "affinity")
		return slices.Equal(got, want)
	})
}

// packets has clients reach backends, as "client backend".
func packetsFrom(t *testing.T, k *aggregatortest.Kernel, pairs ...string) {
	t.Helper()
	for _, p := range pairs {
		client, backend, _ := strings.Cut(p, " ")
		must(t, k.Packet(demo, "affinity", client, backend+" . 8080"))
	}
}

// TestPurgeOfAffinityEntries removes one backend of two, and then the other.
//
// Behaviour: 81.
func TestPurgeOfAffinityEntries(t *testing.T) {
	k := &aggregatortest.Kernel{}
	var looks atomic.Int32
	k.RefuseDump = func() error { looks.Add(1); return nil }
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, Retry: time.Hour}})
	ctx := aggregatortest.Context(t)
	c := d.Dial(t, "tester")
	mustApply(t, c, sticky("10.1.0.1", "10.1.0.2"), blocklist("other", "10.0.0.1"))
	packetsFrom(t, k, "10.0.0.1 10.1.0.1", "10.0.0.2 10.1.0.2", "10.0.0.3 10.1.0.1")
	mustApply(t, c, sticky("10.1.0.1", "10.1.0.2", "10.1.0.3"), blocklist("other", "10.0.0.2"))
	// A call that has gone through says that the writer is past the last commit.
	if _, err := d.Aggregator.ListTables(ctx, aggregator.Reader{All: true}); err != nil || looks.Load() != 0 {
		t.Fatalf("the map was read %d times (%v), though no rule went", looks.Load(), err)
	}
	mustApply(t, c, sticky("10.1.0.2", "10.1.0.3"))
	wantAffinity(t, k, "10.0.0.2 : 10.1.0.2 . 8080")
	mustApply(t, c, sticky())
	wantAffinity(t, k)
	if _, err := d.Aggregator.ListTables(ctx, aggregator.Reader{All: true}); err != nil || looks.Load() != 2 {
		t.Fatalf("the map was read %d times (%v), want twice", looks.Load(), err)
	}
}

// TestAffinitySurvivesRestarts stops the daemon, and starts it again with and
// without its record: no entry goes but those that no rule makes.
//
// Behaviour: 80, 81.
func TestAffinitySurvivesRestarts(t *testing.T) {
	k := &aggregatortest.Kernel{}
	cfg := aggregator.Config{Kernel: k, StateDir: t.TempDir(), Retry: 5 * time.Millisecond}
	run := func(f *weftv1.Fragment, want ...string) {
		t.Helper()
		d := aggregatortest.Start(t, aggregatortest.Config{Config: cfg})
		if f != nil {
			mustApply(t, d.Dial(t, "tester"), f)
		}
		wantAffinity(t, k, want...)
		must(t, d.Stop())
	}
	run(sticky("10.1.0.1", "10.1.0.2"))
	packetsFrom(t, k, "10.0.0.1 10.1.0.1", "10.0.0.2 10.1.0.2")
	both := []string{"10.0.0.1 : 10.1.0.1 . 8080", "10.0.0.2 : 10.1.0.2 . 8080"}
	run(nil, both...)
	run(sticky("10.1.0.1", "10.1.0.2"), both...)

	// The daemon dies between a commit and the removal: an entry is left that no
	// rule makes.
	packetsFrom(t, k, "10.0.0.9 10.1.0.9")
	run(nil, both...)

	cfg.StateDir = ""
	packetsFrom(t, k, "10.0.0.9 10.1.0.9")
	run(nil, append(both, "10.0.0.9 : 10.1.0.9 . 8080")...)
	run(sticky("10.1.0.1", "10.1.0.2"), both...)
	run(sticky("10.1.0.2"), both[1])
}

// TestAffinityMapsOnTheWire has them come back from Get and from the state
// directory, stay over patches, and be refused where packets cannot fill them.
func TestAffinityMapsOnTheWire(t *testing.T) {
	dir := t.TempDir()
	ctx := aggregatortest.Context(t)
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}, StateDir: dir}})
	f := sticky("10.1.0.1")
	f.Lifetime = weftv1.Lifetime_LIFETIME_DURABLE
	c := d.Dial(t, "tester")
	s := session(t, c, func(string) *weftv1.Fragment { return f })
	must(t, errorOf(s.Put(ctx, f)))
	change := func(p *weftv1.TablePatch) {
		t.Helper()
		p.Family, p.Name = "ip", "demo"
		must(t, errorOf(s.Patch(ctx, &weftv1.Patch{Fragment: "sticky", Tables: []*weftv1.TablePatch{p}})))
	}
	check := func(d *aggregatortest.Daemon, want ...string) {
		t.Helper()
		got, err := d.Dial(t, "tester").Get(ctx, "", "sticky")
		must(t, err)
		var names []string
		for _, m := range got.GetFragment().GetTables()[0].GetMaps() {
			if m.GetRole() == weftv1.MapRole_MAP_ROLE_AFFINITY {
				names = append(names, m.GetName())
			}
		}
		slices.Sort(names)
		if !slices.Equal(names, want) {
			t.Fatalf("affinity maps %q: want %q", names, want)
		}
	}
	second := &weftv1.Set{Name: "second", Type: "ipv4_addr : ipv4_addr", Flags: []string{"dynamic"}, Size: 9, Role: weftv1.MapRole_MAP_ROLE_AFFINITY}
	change(&weftv1.TablePatch{PutMaps: []*weftv1.Set{second}})
	check(d, "affinity", "second")
	// A patch declares a map as a snapshot does: without the role it has none.
	plain := proto.CloneOf(second)
	plain.Role = weftv1.MapRole_MAP_ROLE_UNSPECIFIED
	change(&weftv1.TablePatch{PutMaps: []*weftv1.Set{plain}})
	check(d, "affinity")
	change(&weftv1.TablePatch{DeleteSets: []string{"second"}})
	second.Flags = []string{"timeout"}
	_, err := c.Apply(ctx, &weftv1.Fragment{Name: "bad", Tables: []*weftv1.Table{{
		Family: "ip", Name: "demo", Maps: []*weftv1.Set{second},
	}}})
	if r := rejection(t, err, weftv1.Violation_REASON_INVALID); !strings.Contains(r.Error(), "map ip demo second") || !strings.Contains(r.Error(), "flags dynamic") {
		t.Errorf("rejection of a map without flags dynamic: %v", r)
	}
	must(t, errors.Join(s.Close(), d.Stop()))
	check(aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}, StateDir: dir}}), "affinity")
}
