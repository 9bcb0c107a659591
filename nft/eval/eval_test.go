package eval_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft/eval"
	"github.com/weft-proxy/weft/nft/eval/load"
	"github.com/weft-proxy/weft/nft/ruleset"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// parse compiles a ruleset.
func parse(text string) *eval.Ruleset {
	return nfttest.Must(load.Tables(load.Part{Tables: nfttest.Must(ruleset.Parse("test", text))}))
}

// filter returns a ruleset with one forward chain of the given rules.
func filter(rules ...string) *eval.Ruleset { return filterAt("forward", rules...) }

// filterAt is filter for a hook.
func filterAt(hook string, rules ...string) *eval.Ruleset {
	return parse("table ip t {\nchain c {\ntype filter hook " + hook + " priority 0\n" + strings.Join(rules, "\n") + "\n}\n}\n")
}

// out sends every packet on.
func out(*eval.Packet) (eval.Route, bool) {
	return eval.Route{Out: eval.Interface{Index: 2, Name: "out"}}, true
}

// TestBridge has a packet pass from port to port of a bridge: the chains of IP run between those of the family bridge if
// br_netfilter is loaded, and else not at all. To a router it goes through the node, and is a frame only outside.
func TestBridge(t *testing.T) {
	rules := parse(`table ip t { chain c { type filter hook forward priority 0; accept; }; }
		table bridge b {
			chain prerouting { type filter hook prerouting priority -200; }
			chain input { type filter hook input priority 0; }
			chain late { type filter hook forward priority 0; }
			chain early { type filter hook forward priority -200; }
			chain output { type filter hook output priority 0; }
			chain postrouting { type filter hook postrouting priority 0; }
		}`)
	for _, tt := range []struct {
		filtered, router bool
		want             string
	}{
		{true, false, "prerouting early c late postrouting"},
		{false, false, "prerouting early late postrouting"},
		{true, true, "prerouting input c output postrouting"},
		{false, true, "prerouting input c output postrouting"},
	} {
		p := forwarded()
		o := one(t, rules, p, eval.Host{
			Route: func(*eval.Packet) (eval.Route, bool) { return eval.Route{Out: p.In, Router: tt.router}, true },
			Port: func(eval.Interface, netip.Addr) (eval.Interface, bool) {
				return eval.Interface{Index: 9, Name: "port"}, true
			},
			Filtered: func(*eval.Packet) bool { return tt.filtered },
		})
		var chains []string
		for _, s := range o.Steps {
			chains = append(chains, s.Chain)
		}
		if got := strings.Join(chains, " "); got != tt.want || o.Verdict != eval.Accept {
			t.Errorf("filtered %t, to a router %t: %s, %v", tt.filtered, tt.router, got, o.Verdict)
		}
	}
}

// forwarded is a packet that the node forwards.
func forwarded() eval.Packet {
	return eval.Packet{Data: randomPacket(rand.New(rand.NewPCG(1, 1)), 1, false), In: eval.Interface{Index: 1, Name: "in"}}
}

func TestChoices(t *testing.T) {
	rules := filter("numgen random mod 4 vmap { 0 : drop, 1 : accept }", "limit rate 1/second drop")
	outcomes, complete, err := eval.Evaluate(rules, forwarded(), eval.Host{Route: out})
	if err != nil || !complete {
		t.Fatalf("Evaluate: %v, complete %v", err, complete)
	}
	// 0 and 1 decide; 2 and 3 go on to the limit, whose state is not known.
	if len(outcomes) != 6 {
		t.Fatalf("%d outcomes, want 6: %+v", len(outcomes), outcomes)
	}
	drops := 0
	for _, o := range outcomes {
		if o.Verdict == eval.Drop {
			drops++
		}
		p, ok := o.Probability()
		if ok != (len(o.Choices) == 1) || ok && math.Abs(p-0.25) > 1e-9 {
			t.Errorf("choices %+v: probability %v, known %v", o.Choices, p, ok)
		}
	}
	if drops != 3 {
		t.Errorf("%d of the outcomes drop the packet, want 3", drops)
	}
}

func TestUndecided(t *testing.T) {
	for _, tt := range []struct{ rule, want string }{
		{"ct state new accept", "the connection is not known"},
		{"fib daddr type local accept", "the type of address 10."},
		{"meta cpu 0 accept", "meta key 20 is not known"},
		{"numgen random mod 1000 < 3 drop", "numgen has 1000 results"},
		{"ether saddr 00:00:00:00:00:01 drop", "meta key"},
	} {
		o := one(t, filter("counter", tt.rule, "drop"), forwarded(), eval.Host{Route: out})
		if o.Verdict != eval.Undecided || !strings.Contains(o.Reason, tt.want) || len(o.Steps) != 1 {
			t.Errorf("%s: %s %q after %d steps, want undecided with %q after the first rule", tt.rule, o.Verdict, o.Reason, len(o.Steps), tt.want)
		}
	}
}

// TestOwner has the process of a packet of the node itself in rules, as far as it is known, and
// none for a packet of others.
func TestOwner(t *testing.T) {
	uid, class := uint32(1000), uint32(0x10001)
	own := forwarded()
	own.In, own.Owner = eval.Interface{}, eval.Owner{UID: &uid, Cgroup: &class}
	for _, tt := range []struct {
		rule    string
		verdict eval.Verdict
		reason  string
	}{
		{"meta skuid 1000 accept", eval.Accept, ""},
		{"meta skuid 0 accept", eval.Drop, ""},
		{"meta cgroup 65537 accept", eval.Accept, ""},
		{"meta skgid 0 accept", eval.Undecided, "it is not known which group sends the packet"},
	} {
		o := one(t, filterAt("output", tt.rule, "drop"), own, eval.Host{Route: out})
		if o.Verdict != tt.verdict || !strings.Contains(o.Reason, tt.reason) {
			t.Errorf("%s: %s %q, want %s %q", tt.rule, o.Verdict, o.Reason, tt.verdict, tt.reason)
		}
	}
	// Even a comparison for inequality does not match without a socket.
	if o := one(t, filter("meta skuid != 7 accept", "drop"), forwarded(), eval.Host{Route: out}); o.Verdict != eval.Drop {
		t.Errorf("a packet of others: %v", o)
	}
}

func TestTooManyOutcomes(t *testing.T) {
	many := "numgen random mod 64 0 counter"
	outcomes, complete, err := eval.Evaluate(filter(many, many, many), forwarded(), eval.Host{Route: out})
	if err != nil || complete || len(outcomes) != eval.MaxOutcomes {
		t.Errorf("%d outcomes, complete %v, %v, want the first %d", len(outcomes), complete, err, eval.MaxOutcomes)
	}
}

func TestInputIsNotChanged(t *testing.T) {
	p := forwarded()
	before := string(p.Data)
	outcomes, _, err := eval.Evaluate(filter("ip dscp set 9 meta mark set 7"), p, eval.Host{Route: out})
	if err != nil || outcomes[0].Packet.Mark != 7 || string(outcomes[0].Packet.Data) == before {
		t.Errorf("outcomes %+v, %v, want a rewritten packet with mark 7", outcomes, err)
	}
	if string(p.Data) != before || p.Mark != 0 {
		t.Error("Evaluate changes its argument")
	}
}

// TestMalformedPackets cuts packets: each length is an error, and none panics.
func TestMalformedPackets(t *testing.T) {
	p := forwarded()
	six := append([]byte{0x60, 0, 0, 0, 0, 8, 0, 64}, make([]byte, 40)...) // a hop-by-hop header follows
	six[40] = 59                                                           // no next header
	for _, data := range [][]byte{p.Data, six} {
		for n := range data {
			p.Data = data[:n]
			if _, _, err := eval.Evaluate(filter(), p, eval.Host{Route: out}); err == nil {
				t.Errorf("no error for the first %d bytes of %x", n, data)
			}
		}
		p.Data = data
		if _, _, err := eval.Evaluate(filter(), p, eval.Host{Route: out}); err != nil {
			t.Error(err)
		}
	}
}

// TestUnroutable sends a packet to where the kernel has no route: the rules before the routing
// decision are passed.
func TestUnroutable(t *testing.T) {
	o := one(t, filterAt("prerouting", "counter"), forwarded(), eval.Host{Route: func(*eval.Packet) (eval.Route, bool) {
		return eval.Route{Drop: "no route to host"}, true
	}})
	if o.Verdict != eval.Drop || o.Reason != "no route to host" || len(o.Steps) != 2 {
		t.Errorf("%s %q after %d steps, want drop for no route after 2", o.Verdict, o.Reason, len(o.Steps))
	}
}

// TestOwnElements looks up elements that the packet itself has added and deleted.
func TestOwnElements(t *testing.T) {
	for _, tt := range []struct {
		rules []string
		mark  uint32
	}{
		{[]string{"ip saddr @seen meta mark set 1"}, 0},
		{[]string{"add @seen { ip saddr }", "ip saddr @seen meta mark set 1"}, 1},
		{[]string{"add @seen { ip daddr }", "ip saddr @seen meta mark set 1"}, 0},
		{[]string{"add @seen { ip saddr }", "delete @seen { ip saddr }", "ip saddr @seen meta mark set 1"}, 0},
		{[]string{"update @marks { ip saddr : 7 }", "meta mark set ip saddr map @marks"}, 7},
		{[]string{"add @marks { ip saddr : 7 }", "update @marks { ip saddr : 8 }", "meta mark set ip saddr map @marks"}, 7},
	} {
		rules := parse(`table ip t {
			set seen { type ipv4_addr; flags dynamic; size 100; }
			map marks { type ipv4_addr : mark; flags dynamic; size 100; }
			chain c { type filter hook forward priority 0; ` + strings.Join(tt.rules, "; ") + `; }
		}`)
		if o := one(t, rules, forwarded(), eval.Host{Route: out}); o.Verdict != eval.Accept || o.Packet.Mark != tt.mark {
			t.Errorf("%v: mark %d, want %d", tt.rules, o.Packet.Mark, tt.mark)
		}
	}
}

// TestToItself: a packet of the node to itself leaves through lo and comes back, and is translated once.
func TestToItself(t *testing.T) {
	rules := parse(`table ip t {
		chain pre { type filter hook prerouting priority 0; iifname "lo" counter; }
		chain natpre { type nat hook prerouting priority 0; counter; }
		chain in { type filter hook input priority 0; iifname "lo" drop; }
		chain out { type filter hook output priority 0; oifname "lo" counter; }
		chain natout { type nat hook output priority 0; counter; }
	}`)
	p := forwarded()
	p.In, p.Conn = eval.Interface{}, &eval.Conn{State: eval.StateNew}
	o := one(t, rules, p, eval.Host{Route: func(*eval.Packet) (eval.Route, bool) { return eval.Route{Local: true}, true }})
	var got []string
	for _, s := range o.Steps {
		if s.Rule != 0 {
			got = append(got, s.Chain)
		}
	}
	slices.Sort(got)
	if o.Verdict != eval.Drop || !slices.Equal(got, []string{"in", "natout", "out", "pre"}) {
		t.Errorf("verdict %v, rules of %v: want a drop, and not the nat chain of prerouting", o.Verdict, got)
	}
}

// TestZeroChecksum: a checksum that a rule makes zero is the other zero, as the kernel writes it.
func TestZeroChecksum(t *testing.T) {
	p := forwarded()
	data := p.Data
	// The checksum is wrong by exactly the rule's change, so it becomes zero.
	binary.BigEndian.PutUint16(data[10:], 0)
	data[8] = 30
	old := checksum(data[:20], 0)
	binary.BigEndian.PutUint16(data[4:], binary.BigEndian.Uint16(data[4:])+old)
	if sum := checksum(data[:20], 0); sum != 0 && sum != 0xffff {
		t.Fatalf("the checksum is %#x: want zero", sum)
	}
	data[8] = 64
	binary.BigEndian.PutUint16(data[10:], checksum(data[:20], 0))
	p.In = eval.Interface{Index: 1, Name: "in"}
	o := one(t, filter("ip ttl set 30 drop"), p, eval.Host{Route: out})
	if got := binary.BigEndian.Uint16(o.Packet.Data[10:]); got != 0xffff {
		t.Errorf("the checksum is %#x, want 0xffff", got)
	}
}

// TestRandomIntervals has one outcome for each interval, with its exact share of the numbers.
func TestRandomIntervals(t *testing.T) {
	for _, tt := range []struct {
		rule string
		want map[uint32]float64
	}{
		{"meta mark set numgen random mod 65536 map { 0-16383 : 1, 16384-65535 : 2 }", map[uint32]float64{1: 0.25, 2: 0.75}},
		// The intervals go past the last number, and the numbers begin in the middle of one.
		{"meta mark set numgen random mod 1000 offset 100 map { 0-199 : 1, 200-70000 : 2 }", map[uint32]float64{1: 0.1, 2: 0.9}},
		// No element has the last number: the rule does not match.
		{"meta mark set numgen random mod 100 map { 0-49 : 1, 50-98 : 2 }", map[uint32]float64{1: 0.5, 2: 0.49, 0: 0.01}},
		{"numgen random mod 65536 vmap { 0-32767 : drop, 32768-65535 : accept }", map[uint32]float64{0: 1}},
	} {
		outcomes, complete, err := eval.Evaluate(filter(tt.rule), forwarded(), eval.Host{Route: out})
		if err != nil || !complete {
			t.Errorf("%s: %v, complete %v", tt.rule, err, complete)
			continue
		}
		got := map[uint32]float64{}
		for _, o := range outcomes {
			p, known := o.Probability()
			if o.Verdict == eval.Undecided || !known {
				t.Errorf("%s: %s %q, probability known: %v", tt.rule, o.Verdict, o.Reason, known)
			}
			got[o.Packet.Mark] += p
		}
		if len(got) != len(tt.want) {
			t.Errorf("%s: marks %v, want %v", tt.rule, got, tt.want)
		}
		for mark, p := range tt.want {
			if math.Abs(got[mark]-p) > 1e-9 {
				t.Errorf("%s: mark %d has the probability %v, want %v", tt.rule, mark, got[mark], p)
			}
		}
	}
}

// TestRandomIntervalsUndecided has numbers that are more than can be listed.
func TestRandomIntervalsUndecided(t *testing.T) {
	rule := "meta mark set numgen random mod 65536 map { 0-9 : 1 }" // 65,526 numbers without an interval
	if o := one(t, filter(rule), forwarded(), eval.Host{Route: out}); o.Verdict != eval.Undecided {
		t.Errorf("%s: outcome %+v, want one that is undecided", rule, o)
	}
}

// TestReplyIsTranslatedBack evaluates a packet with translated source and destination, and then its
// reply with the connection of the outcome.
func TestReplyIsTranslatedBack(t *testing.T) {
	rules := parse(`table ip t {
		chain c { type filter hook forward priority 0; ct original ip daddr 10.96.0.1 ct reply ip saddr 10.2.0.2 ct status dnat accept; drop; }
		chain dnat { type nat hook prerouting priority -100; meta l4proto tcp dnat ip to 10.2.0.2:8080; }
		chain snat { type nat hook postrouting priority 100; snat ip to 10.2.0.9; }
	}`)
	host := eval.Host{Route: out}
	client, service := netip.MustParseAddrPort("10.1.0.1:40000"), netip.MustParseAddrPort("10.96.0.1:80")
	p := eval.Packet{Data: segment(client, service), In: eval.Interface{Index: 1, Name: "in"}, Conn: &eval.Conn{State: eval.StateNew}}
	first := one(t, rules, p, host)
	if src, dst := first.Packet.Source(), first.Packet.Destination(); src.String() != "10.2.0.9" || dst.String() != "10.2.0.2" || first.Verdict != eval.Accept {
		t.Fatalf("the packet leaves from %s to %s, want 10.2.0.9 to 10.2.0.2", src, dst)
	}
	conn := *first.Packet.Conn
	conn.State, conn.Reply = eval.StateEstablished, true
	back := one(t, rules, eval.Packet{Data: segment(netip.MustParseAddrPort("10.2.0.2:8080"), netip.MustParseAddrPort("10.2.0.9:40000")), In: eval.Interface{Index: 2, Name: "out"}, Conn: &conn}, host)
	if src, dst := back.Packet.Source(), back.Packet.Destination(); src != service.Addr() || dst != client.Addr() || back.Verdict != eval.Accept {
		t.Errorf("the reply leaves from %s to %s, want %s to %s", src, dst, service.Addr(), client.Addr())
	}
	if port := [2]byte(back.Packet.Data[20:22]); port != [2]byte{0, 80} {
		t.Errorf("the reply leaves from port %d, want 80", port)
	}
	// Without the addresses of the connection it is not known.
	conn = eval.Conn{State: eval.StateEstablished, NAT: true}
	p.Conn = &conn
	if o := one(t, rules, p, host); o.Verdict != eval.Undecided {
		t.Errorf("outcome %+v: want undecided", o)
	}
}

// one evaluates a packet that has one outcome.
func one(t *testing.T, rules *eval.Ruleset, p eval.Packet, host eval.Host) eval.Outcome {
	t.Helper()
	outcomes, _, err := eval.Evaluate(rules, p, host)
	if err != nil || len(outcomes) != 1 {
		t.Fatalf("outcomes %+v, %v: want one", outcomes, err)
	}
	return outcomes[0]
}

// segment returns the first packet of a TCP connection, without checksums.
func segment(source, destination netip.AddrPort) []byte {
	b := append([]byte{0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0}, source.Addr().AsSlice()...)
	b = append(b, destination.Addr().AsSlice()...)
	b = append(b, byte(source.Port()>>8), byte(source.Port()), byte(destination.Port()>>8), byte(destination.Port()))
	return append(b, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0)
}

// TestNotrack: a rule before connection tracking takes the connection from a packet, and one after it
// does not.
func TestNotrack(t *testing.T) {
	p := eval.Packet{Data: segment(netip.MustParseAddrPort("10.1.0.1:40000"), netip.MustParseAddrPort("10.2.0.2:80")), In: eval.Interface{Index: 1, Name: "in"}}
	for priority, state := range map[int]string{-300: "untracked", -150: "new"} {
		rules := parse(fmt.Sprintf(`table ip t {
			chain raw { type filter hook prerouting priority %d; notrack; }
			chain c { type filter hook forward priority 0; ct state %s accept; drop; }
		}`, priority, state))
		p.Conn = &eval.Conn{State: eval.StateNew}
		if o := one(t, rules, p, eval.Host{Route: out}); o.Verdict != eval.Accept {
			t.Errorf("priority %d: %+v, want the state %s", priority, o, state)
		}
	}
}
