package desired_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/conntrack"
	nftset "github.com/weft-proxy/weft/nft/set"
)

const (
	tcp = 6
	udp = 17
)

func wantStale(t *testing.T, p *desired.Plan, want ...conntrack.Stale) {
	t.Helper()
	if got, want := fmt.Sprint(p.Stale), fmt.Sprint(want); got != want {
		t.Errorf("stale %s, want %s", got, want)
	}
}

func stale(vip string, port uint16, unrouted bool, gone ...string) conntrack.Stale {
	st := conntrack.Stale{Port: port, First: unrouted}
	if vip != "" {
		st.Addr = netip.MustParseAddr(vip)
	}
	for _, g := range gone {
		st.Removed = append(st.Removed, netip.MustParseAddrPort(g))
	}
	return st
}

func slotsOf(vip string, proto byte, backends ...string) []nftset.Element {
	var all []nftset.Element
	for i, b := range backends {
		all = append(all, endpoint(vip, proto, 53, uint32(i), b))
	}
	return all
}

func TestStale(t *testing.T) {
	const a, b, c = "10.1.0.1:53", "10.1.0.2:53", "10.1.0.3:53"
	h := newHarness(t)
	vip := "10.96.0.10"
	publish := func(elems ...nftset.Element) *desired.Plan {
		t.Helper()
		return h.commit(snapshot(services, 0, in(ipWeft, endpointMap("endpoints", elems...))))
	}
	wantStale(t, publish(append(slotsOf(vip, udp, a, b), slotsOf(vip, tcp, a, b)...)...), stale(vip, 53, true))
	wantStale(t, publish(append(slotsOf(vip, udp, a, b, c), slotsOf(vip, tcp, a, b)...)...)) // more of them
	wantStale(t, publish(append(slotsOf(vip, udp, c, b), slotsOf(vip, tcp, b)...)...), stale(vip, 53, false, a))
	wantStale(t, publish(slotsOf(vip, udp, b, c)...))       // only moved
	wantStale(t, publish(slotsOf(vip, udp, b, c, b)...))    // twice
	wantStale(t, publish(slotsOf(vip, udp, a, c, b)...))    // still there once
	wantStale(t, publish(), stale(vip, 53, false, a, b, c)) // all gone
	wantStale(t, publish(slotsOf(vip, tcp, a)...))          // not udp
	wantStale(t, publish(slotsOf(vip, udp, a)...), stale(vip, 53, true))
	wantStale(t, h.commit(snapshot(services, 0)), stale(vip, 53, false, a))
}

// TestDeserted tells destinations that lead nowhere any more from those that have lost
// one backend of several.
func TestDeserted(t *testing.T) {
	const a, b = "10.1.0.1:53", "10.1.0.2:53"
	h := newHarness(t)
	want := func(u *desired.Update, want ...conntrack.Stale) {
		t.Helper()
		if got, want := fmt.Sprint(h.commit(u).Deserted), fmt.Sprint(want); got != want {
			t.Errorf("deserted %s, want %s", got, want)
		}
	}
	publish := func(elems ...nftset.Element) *desired.Update {
		return snapshot(services, 0, in(ipWeft, endpointMap("endpoints", elems...)))
	}
	one, two := slotsOf("10.96.0.10", udp, a, b), slotsOf("10.96.0.11", udp, b)
	web := slotsOf("10.96.0.10", tcp, a, b)
	want(publish(append(append(one, two...), web...)...))
	want(publish(append(one[:1:1], two...)...))
	want(publish(append(slotsOf("10.96.0.10", udp, b), two...)...))
	want(publish(two...), stale("10.96.0.10", 53, false, b))
	want(publish(append(one, two...)...))
	want(publish(), stale("10.96.0.10", 53, false, a, b), stale("10.96.0.11", 53, false, b))
	want(publish(one...))
	want(snapshot(services, 0), stale("10.96.0.10", 53, false, a, b))
}

// nodePorts is a watched map of NodePorts without addresses, and nodePort one of its elements.
func nodePorts(elems ...nftset.Element) desired.Set {
	d := &nftset.Set{Name: "nodeport-endpoints", Key: typePort, Data: typeBackend, Map: true, Flags: nftset.FlagMap}
	return desired.Set{Decl: d, Conntrack: true, Elements: elems}
}

func nodePort(backend string) nftset.Element {
	e := endpoint("0.0.0.0", udp, 30053, 0, backend)
	e.Key = e.Key[4:]
	return e
}

// leadingMap is a map of verdicts by NodePort.
func leadingMap(elems ...nftset.Element) desired.Set {
	return desired.Set{Decl: &nftset.Set{Name: "nodeports", Key: typePort, Map: true, Verdict: true, Flags: nftset.FlagMap}, Elements: elems}
}

// unwatched is a map of endpoints whose flows are not watched.
func unwatched(elems ...nftset.Element) desired.Set {
	s := endpointMap("endpoints", elems...)
	s.Conntrack = false
	return s
}

func TestStaleNodePort(t *testing.T) {
	h := newHarness(t)
	publish := func(backend string) *desired.Plan {
		return h.commit(snapshot(services, 0, in(ipWeft, nodePorts(nodePort(backend)))))
	}
	wantStale(t, publish("10.1.0.1:53"), stale("0.0.0.0", 30053, true))
	live := []conntrack.Destination{{Addr: netip.IPv4Unspecified(), Port: 30053, Backends: []netip.AddrPort{netip.MustParseAddrPort("10.1.0.1:53")}}}
	if got, want := fmt.Sprint(planner.Live(h.State)), fmt.Sprint(live); got != want {
		t.Errorf("live %s, want %s", got, want)
	}
	wantStale(t, publish("10.1.0.2:53"), stale("0.0.0.0", 30053, false, "10.1.0.1:53"))
}

// TestStalePoolBegins has a destination with two pools, as a NodePort with externalTrafficPolicy Local has: what
// was not translated is stale when either gets its first backend, and not when one grows.
func TestStalePoolBegins(t *testing.T) {
	const vip, a, b, c = "10.96.0.10", "10.1.0.1:53", "10.1.0.2:53", "10.1.0.3:53"
	const local = 1_000_000
	h := newHarness(t)
	publish := func(elems ...nftset.Element) *desired.Plan {
		t.Helper()
		return h.commit(snapshot(services, 0, in(ipWeft, endpointMap("endpoints", elems...))))
	}
	slot := func(n uint32, backend string) nftset.Element { return endpoint(vip, udp, 53, n, backend) }
	wantStale(t, publish(slot(0, a)), stale(vip, 53, true))
	wantStale(t, publish(slot(0, a), slot(local, b)), stale(vip, 53, true))
	wantStale(t, publish(slot(0, a), slot(1, b), slot(local, b), slot(local+1, c)))
	wantStale(t, publish(slot(0, a)), stale(vip, 53, false, b, c))
	wantStale(t, publish(slot(0, a), slot(local, a)), stale(vip, 53, true))
}

// TestStaleWhereTranslated leads a NodePort from chain to chain: what was not translated is stale when a chain
// without a backend gives way to one with some.
func TestStaleWhereTranslated(t *testing.T) {
	port := nodePort("10.1.0.1:53")
	picks := rule("dnat ip to meta l4proto . th dport map @nodeport-endpoints", "@nodeport-endpoints")
	h := newHarness(t)
	lead := func(to string) *desired.Plan {
		t.Helper()
		verdicts := leadingMap()
		if to != "" {
			verdicts.Elements = []nftset.Element{{Key: port.Key[:8], Data: "\xff\xff\xff\xfc" + to}}
		}
		return h.commit(snapshot(services, 0, in(ipWeft, base("hook", 0, rule("vmap @nodeports", "@nodeports")), verdicts,
			nodePorts(port), regular("elsewhere", rule("return")), regular("pick-1", picks), regular("pick-2", picks))))
	}
	first := stale("0.0.0.0", 30053, true)
	lead("elsewhere")
	wantStale(t, lead("pick-1"), first)
	wantStale(t, lead("pick-2"))
	wantStale(t, lead("elsewhere"))
	wantStale(t, lead("pick-2"), first)
	wantStale(t, lead(""))
}

// TestStaleWhereReached changes what decides where a destination without an address answers, and
// what does not.
func TestStaleWhereReached(t *testing.T) {
	led, not := rule("ip daddr @node vmap @nodeports", "@node", "@nodeports"), rule("ip daddr @other reject", "@other")
	publish := func(node, other []nftset.Element, chains ...any) *desired.Update {
		return snapshot(services, 0, in(ipWeft, append(chains, nodePorts(nodePort("10.1.0.1:53")), leadingMap(),
			intervalSet("node", node...), addrSet("other", other...), endpointMap("endpoints", slotsOf("10.96.0.10", udp, "10.1.0.1:53")...))...))
	}
	h := newHarness(t)
	chain := base("hook", 0, led, not)
	h.commit(publish(nil, nil, chain))
	first := stale("0.0.0.0", 30053, true)
	wantStale(t, h.commit(publish(nil, []nftset.Element{member("192.0.2.9")}, chain)))
	one := []nftset.Element{member("192.0.2.1")}
	first.At = map[netip.Addr]struct{}{netip.MustParseAddr("192.0.2.1"): {}}
	wantStale(t, h.commit(publish(one, []nftset.Element{member("192.0.2.9")}, chain)), first)
	wantStale(t, h.commit(publish(one, []nftset.Element{member("192.0.2.9")}, chain, regular("new", rule("drop")))))
	other := []nftset.Element{member("192.0.2.9")}
	wantStale(t, h.commit(publish(one, other, chain, regular("new", rule("accept")))))
	wantStale(t, h.commit(publish(one, other, base("hook", 0, led), regular("new", rule("accept")))))
	wantStale(t, h.commit(publish(one, other, base("hook", 0, led), regular("new", led, rule("accept")))), first)
	local := func(prefix string) (out string) {
		p, _ := netip.ParsePrefix(prefix)
		return fmt.Sprint(planner.Answering(h.State, p))
	}
	for prefix, want := range map[string]string{
		"192.0.2.7/32": fmt.Sprint([]conntrack.Stale{stale("192.0.2.7", 30053, true)}), "192.0.2.0/24": fmt.Sprint([]conntrack.Stale{first}),
		"": fmt.Sprint([]conntrack.Stale{first}), "2001:db8::1/128": "[]",
	} {
		same(t, "stale once this is local: "+prefix, local(prefix), want)
	}
	if live := planner.Live(h.State); len(live) != 2 || fmt.Sprint(live[0].At) != fmt.Sprint(first.At) || live[1].At != nil {
		t.Errorf("live %v", live)
	}
	wantStale(t, h.commit(publish(nil, nil, base("hook", 0, led), regular("new", rule("accept")))))
}

func TestStaleOnlyWatched(t *testing.T) {
	h := newHarness(t)
	m := unwatched(slotsOf("10.96.0.10", udp, "10.1.0.1:53")...)
	wantStale(t, h.commit(snapshot(services, 0, in(ipWeft, m))))
	if len(planner.Live(h.State)) != 0 {
		t.Errorf("live %v of a map that is not watched", planner.Live(h.State))
	}
	m.Conntrack = true
	wantStale(t, h.commit(snapshot(services, 0, in(ipWeft, m))))
	if len(planner.Live(h.State)) != 1 {
		t.Errorf("live %v of a map that is watched", planner.Live(h.State))
	}
	wantStale(t, h.commit(snapshot(services, 0, in(ipWeft, endpointMap("endpoints")))), stale("10.96.0.10", 53, false, "10.1.0.1:53"))
}

func TestStaleWhenShadowed(t *testing.T) {
	h := newHarness(t)
	vip := "10.96.0.10"
	h.commit(snapshot(services, 1, in(ipWeft, endpointMap("endpoints", slotsOf(vip, udp, "10.1.0.1:53")...))))
	p := h.commit(snapshot(policy, 0, in(ipWeft, endpointMap("endpoints", slotsOf(vip, udp, "10.1.0.2:53")...))))
	wantStale(t, p, stale(vip, 53, false, "10.1.0.1:53"))
}

func TestLiveAfterRestart(t *testing.T) {
	h := newHarness(t)
	h.commit(snapshot(services, 0, in(ipWeft, endpointMap("endpoints", append(slotsOf("10.96.0.10", udp, "10.1.0.2:53", "10.1.0.1:53"), slotsOf("10.96.0.9", udp, "10.1.0.3:53")...)...))))
	want := fmt.Sprint(planner.Live(h.State))
	if want != "[{10.96.0.9 53 [10.1.0.3:53] map[]} {10.96.0.10 53 [10.1.0.1:53 10.1.0.2:53] map[]}]" {
		t.Errorf("live %s", want)
	}
	h.restart(views.Record(h.State))
	same(t, "live after a restart", fmt.Sprint(planner.Live(h.State)), want)
	// What an absent publisher had is flushed when it comes back with less.
	p := h.commit(snapshot(services, 0, in(ipWeft, endpointMap("endpoints", slotsOf("10.96.0.9", udp, "10.1.0.3:53")...))))
	wantStale(t, p, stale("10.96.0.10", 53, false, "10.1.0.1:53", "10.1.0.2:53"))
}

// TestStaleOnlyOfSharesThatWantIt shares a map between a fragment that wants its flows to be
// watched and one that does not: only entries of the first one's keys are removed.
func TestStaleOnlyOfSharesThatWantIt(t *testing.T) {
	const a, b = "10.1.0.1:53", "10.1.0.2:53"
	h := newHarness(t)
	dns, own := slotsOf("10.96.0.10", udp, a), slotsOf("10.96.0.99", udp, b)
	wantStale(t, h.commit(snapshot(services, 0, in(ipWeft, unwatched(dns...)))))
	// A fragment that wants it does not have the other's keys watched.
	watch := desired.Key{Publisher: "watch", Name: "f"}
	wantStale(t, h.commit(snapshot(watch, 0, in(ipWeft, endpointMap("endpoints", own...)))), stale("10.96.0.99", 53, true))
	wantStale(t, h.commit(snapshot(services, 0, in(ipWeft, unwatched()))))
	wantStale(t, h.commit(snapshot(watch, 0, in(ipWeft, endpointMap("endpoints")))), stale("10.96.0.99", 53, false, b))
}

// TestStaleOfTheLastWatch has the last fragment that wants a map's flows to be watched go
// away, while another one keeps the map.
func TestStaleOfTheLastWatch(t *testing.T) {
	const a, b = "10.1.0.1:53", "10.1.0.2:53"
	dns, own := slotsOf("10.96.0.10", udp, a), slotsOf("10.96.0.99", udp, b)
	watch := desired.Key{Publisher: "watch", Name: "f"}
	start := func() *harness {
		h := newHarness(t)
		h.commit(snapshot(services, 0, in(ipWeft, unwatched(dns...))), snapshot(watch, 0, in(ipWeft, endpointMap("endpoints", own...))))
		return h
	}
	gone := stale("10.96.0.99", 53, false, b)
	withdrawn := snapshot(watch, 0)
	wantStale(t, start().commit(withdrawn), gone)
	wantStale(t, start().commit(withdrawn, snapshot(services, 0)), gone)
	// Another one has the backend too.
	wantStale(t, start().commit(snapshot(services, 0, in(ipWeft, unwatched(append(own, dns...)...))), withdrawn))
	refused := start()
	refused.apply(withdrawn)
	refused.Rollback()
	wantStale(t, refused.commit(withdrawn), gone)
	// The map gets another type.
	wider := unwatched()
	d := *wider.Decl
	d.Key = typePort
	wider.Decl = &d
	wantStale(t, start().commit(withdrawn, snapshot(services, 0, in(ipWeft, wider))), gone)
}

// TestStaleBesideAnotherMap has two publishers lead one destination to backends, each in a
// table of its own: neither makes flows stale that the other's map still leads.
func TestStaleBesideAnotherMap(t *testing.T) {
	const a, b, c = "10.1.0.1:53", "10.1.0.2:53", "10.1.0.3:53"
	vip := "10.96.0.10"
	other := desired.Key{Publisher: "other", Name: "f"}
	h := newHarness(t)
	publish := func(backends ...string) *desired.Plan {
		t.Helper()
		return h.commit(snapshot(services, 0, in(ipWeft, endpointMap("endpoints", slotsOf(vip, udp, backends...)...))))
	}
	beside := func(backends ...string) *desired.Plan {
		t.Helper()
		return h.commit(snapshot(other, 0, in(ipDeny, endpointMap("mine", slotsOf(vip, udp, backends...)...))))
	}
	publish(a, b)
	beside(b, c)
	wantStale(t, beside(c))
	wantStale(t, beside(b, c))
	wantStale(t, publish(b), stale(vip, 53, false, a))
	wantStale(t, publish(a))
	wantStale(t, beside(a), stale(vip, 53, false, b, c))
	wantStale(t, h.commit(snapshot(other, 0)))
	wantStale(t, h.commit(snapshot(services, 0)), stale(vip, 53, false, a))
	// After a restart too.
	publish(a)
	beside(a, b)
	h.restart(views.Record(h.State))
	wantStale(t, beside(b))
	wantStale(t, publish(), stale(vip, 53, false, a))
	if len(h.Watched) != 2 {
		t.Errorf("%d watched maps, want 2", len(h.Watched))
	}
	h.commit(snapshot(services, 0), snapshot(other, 0))
	if len(h.Watched) != 0 {
		t.Errorf("%d watched maps without fragments", len(h.Watched))
	}
}
