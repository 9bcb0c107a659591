package eval_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/eval"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
)

// filter returns a ruleset with one forward chain of the given rules.
func filter(t *testing.T, rules ...string) *eval.Ruleset {
	t.Helper()
	return filterAt(t, unix.NF_INET_FORWARD, rules...)
}

// filterAt is filter for a hook.
func filterAt(t *testing.T, hook uint32, rules ...string) *eval.Ruleset {
	t.Helper()
	c := eval.Chain{Decl: &object.Chain{Name: "c", Base: &object.Base{Type: "filter", Hook: hook}}}
	for i, text := range rules {
		r, err := compile.CompileRule(nft.FamilyIP, nft.Rule{Text: text}, scope{})
		if err != nil {
			t.Fatal(err)
		}
		c.Rules = append(c.Rules, eval.Rule{Handle: uint64(i + 1), Exprs: r.Exprs, Anonymous: eval.Anonymous(r.Anonymous)})
	}
	return &eval.Ruleset{Tables: []eval.Table{{ID: nft.TableID{Family: nft.FamilyIP, Name: "t"}, Chains: []eval.Chain{c}}}}
}

// out sends every packet on.
func out(*eval.Packet) (eval.Route, bool) {
	return eval.Route{Out: eval.Interface{Index: 2, Name: "out"}}, true
}

// TestBridge has a packet pass from port to port of a bridge: the chains of IP run between those of the family bridge if
// br_netfilter is loaded, and else not at all. To a router it goes through the node, and is a frame only outside.
func TestBridge(t *testing.T) {
	rules := filter(t, "accept")
	bridge := eval.Table{ID: nft.TableID{Family: nft.FamilyBridge, Name: "b"}}
	for _, c := range []struct {
		name     string
		hook     uint32
		priority int32
	}{
		{"prerouting", unix.NF_INET_PRE_ROUTING, -200}, {"input", unix.NF_INET_LOCAL_IN, 0}, {"late", unix.NF_INET_FORWARD, 0},
		{"early", unix.NF_INET_FORWARD, -200}, {"output", unix.NF_INET_LOCAL_OUT, 0}, {"postrouting", unix.NF_INET_POST_ROUTING, 0},
	} {
		bridge.Chains = append(bridge.Chains, eval.Chain{Decl: &object.Chain{Name: c.name, Base: &object.Base{Type: "filter", Hook: c.hook, Priority: c.priority}}})
	}
	rules.Tables = append(rules.Tables, bridge)
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
		outcomes, _, err := eval.Evaluate(rules, p, eval.Host{
			Route: func(*eval.Packet) (eval.Route, bool) { return eval.Route{Out: p.In, Router: tt.router}, true },
			Port: func(eval.Interface, netip.Addr) (eval.Interface, bool) {
				return eval.Interface{Index: 9, Name: "port"}, true
			},
			Filtered: func(*eval.Packet) bool { return tt.filtered },
		})
		if err != nil || len(outcomes) != 1 {
			t.Fatalf("%d outcomes, %v", len(outcomes), err)
		}
		var chains []string
		for _, s := range outcomes[0].Steps {
			chains = append(chains, s.Chain)
		}
		if got := strings.Join(chains, " "); got != tt.want || outcomes[0].Verdict != eval.Accept {
			t.Errorf("filtered %t, to a router %t: %s, %v", tt.filtered, tt.router, got, outcomes[0].Verdict)
		}
	}
}

// forwarded is a packet that the node forwards.
func forwarded() eval.Packet {
	return eval.Packet{Data: randomPacket(rand.New(rand.NewPCG(1, 1)), 1, false), In: eval.Interface{Index: 1, Name: "in"}}
}

func TestChoices(t *testing.T) {
	rules := filter(t, "numgen random mod 4 vmap { 0 : drop, 1 : accept }", "limit rate 1/second drop")
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
		outcomes, _, err := eval.Evaluate(filter(t, "counter", tt.rule, "drop"), forwarded(), eval.Host{Route: out})
		if err != nil || len(outcomes) != 1 {
			t.Errorf("%s: %d outcomes, %v", tt.rule, len(outcomes), err)
			continue
		}
		o := outcomes[0]
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
		outcomes, _, err := eval.Evaluate(filterAt(t, unix.NF_INET_LOCAL_OUT, tt.rule, "drop"), own, eval.Host{Route: out})
		if err != nil || len(outcomes) != 1 {
			t.Fatalf("%s: %v, %v", tt.rule, outcomes, err)
		}
		if o := outcomes[0]; o.Verdict != tt.verdict || !strings.Contains(o.Reason, tt.reason) {
			t.Errorf("%s: %s %q, want %s %q", tt.rule, o.Verdict, o.Reason, tt.verdict, tt.reason)
		}
	}
	// Even a comparison for inequality does not match without a socket.
	outcomes, _, err := eval.Evaluate(filter(t, "meta skuid != 7 accept", "drop"), forwarded(), eval.Host{Route: out})
	if err != nil || len(outcomes) != 1 || outcomes[0].Verdict != eval.Drop {
		t.Errorf("a packet of others: %v, %v", outcomes, err)
	}
}

func TestTooManyOutcomes(t *testing.T) {
	many := "numgen random mod 64 0 counter"
	outcomes, complete, err := eval.Evaluate(filter(t, many, many, many), forwarded(), eval.Host{Route: out})
	if err != nil || complete || len(outcomes) != eval.MaxOutcomes {
		t.Errorf("%d outcomes, complete %v, %v, want the first %d", len(outcomes), complete, err, eval.MaxOutcomes)
	}
}

func TestInputIsNotChanged(t *testing.T) {
	p := forwarded()
	before := string(p.Data)
	outcomes, _, err := eval.Evaluate(filter(t, "ip dscp set 9 meta mark set 7"), p, eval.Host{Route: out})
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
			if _, _, err := eval.Evaluate(filter(t), p, eval.Host{Route: out}); err == nil {
				t.Errorf("no error for the first %d bytes of %x", n, data)
			}
		}
		p.Data = data
		if _, _, err := eval.Evaluate(filter(t), p, eval.Host{Route: out}); err != nil {
			t.Error(err)
		}
	}
}

// TestUnroutable sends a packet to where the kernel has no route: the rules before the routing
// decision are passed.
func TestUnroutable(t *testing.T) {
	rules := filter(t, "counter")
	rules.Tables[0].Chains[0].Decl.Base.Hook = 0
	outcomes, _, err := eval.Evaluate(rules, forwarded(), eval.Host{Route: func(*eval.Packet) (eval.Route, bool) {
		return eval.Route{Drop: "no route to host"}, true
	}})
	if err != nil || len(outcomes) != 1 {
		t.Fatalf("%d outcomes, %v", len(outcomes), err)
	}
	if o := outcomes[0]; o.Verdict != eval.Drop || o.Reason != "no route to host" || len(o.Steps) != 2 {
		t.Errorf("%s %q after %d steps, want drop for no route after 2", o.Verdict, o.Reason, len(o.Steps))
	}
}

// TestOwnElements looks up elements that the packet itself has added and deleted.
func TestOwnElements(t *testing.T) {
	seen := &nft.Set{Name: "seen", Type: "ipv4_addr", Flags: []string{"dynamic"}, Size: 100}
	marks := &nft.Map{Name: "marks", Type: "ipv4_addr : mark", Flags: []string{"dynamic"}, Size: 100}
	decl, err := set.Compile(nft.FamilyIP, seen)
	if err != nil {
		t.Fatal(err)
	}
	declMap, err := set.CompileMap(nft.FamilyIP, marks)
	if err != nil {
		t.Fatal(err)
	}
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
		var chain eval.Chain
		chain.Decl = &object.Chain{Name: "c", Base: &object.Base{Type: "filter", Hook: 2}}
		for i, text := range tt.rules {
			r, err := compile.CompileRule(nft.FamilyIP, nft.Rule{Text: text}, scope{"seen": decl, "marks": declMap})
			if err != nil {
				t.Fatal(err)
			}
			chain.Rules = append(chain.Rules, eval.Rule{Handle: uint64(i + 1), Exprs: r.Exprs})
		}
		rules := &eval.Ruleset{Tables: []eval.Table{{ID: nft.TableID{Family: nft.FamilyIP, Name: "t"}, Chains: []eval.Chain{chain}, Sets: []eval.Set{eval.NewSet(decl, nil), eval.NewSet(declMap, nil)}}}}
		if o := one(t, rules, forwarded()); o.Packet.Mark != tt.mark {
			t.Errorf("%v: mark %d, want %d", tt.rules, o.Packet.Mark, tt.mark)
		}
	}
}

// TestToItself: a packet of the node to itself leaves through lo and comes back, and is translated once.
func TestToItself(t *testing.T) {
	rule := func(handle uint64, text string) eval.Rule {
		r, err := compile.CompileRule(nft.FamilyIP, nft.Rule{Text: text}, scope{})
		if err != nil {
			t.Fatal(err)
		}
		return eval.Rule{Handle: handle, Exprs: r.Exprs, Anonymous: eval.Anonymous(r.Anonymous)}
	}
	chain := func(name, kind string, hook uint32, rules ...eval.Rule) eval.Chain {
		return eval.Chain{Decl: &object.Chain{Name: name, Base: &object.Base{Type: kind, Hook: hook}}, Rules: rules}
	}
	rules := &eval.Ruleset{Tables: []eval.Table{{ID: nft.TableID{Family: nft.FamilyIP, Name: "t"}, Chains: []eval.Chain{
		chain("pre", "filter", 0, rule(1, `iifname "lo" counter`)),
		chain("natpre", "nat", 0, rule(2, "counter")),
		chain("in", "filter", 1, rule(3, `iifname "lo" drop`)),
		chain("out", "filter", 3, rule(4, `oifname "lo" counter`)),
		chain("natout", "nat", 3, rule(5, "counter")),
	}}}}
	p := forwarded()
	p.In, p.Conn = eval.Interface{}, &eval.Conn{State: eval.StateNew}
	outcomes, _, err := eval.Evaluate(rules, p, eval.Host{Route: func(*eval.Packet) (eval.Route, bool) { return eval.Route{Local: true}, true }})
	if err != nil || len(outcomes) != 1 {
		t.Fatalf("%d outcomes, %v", len(outcomes), err)
	}
	var got []uint64
	for _, s := range outcomes[0].Steps {
		if s.Rule != 0 {
			got = append(got, s.Rule)
		}
	}
	slices.Sort(got)
	if outcomes[0].Verdict != eval.Drop || !slices.Equal(got, []uint64{1, 3, 4, 5}) {
		t.Errorf("verdict %v, rules %v: want a drop after rules 1, 3, 4 and 5, and not the nat chain of prerouting", outcomes[0].Verdict, got)
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
	outcomes, _, err := eval.Evaluate(filter(t, "ip ttl set 30 drop"), p, eval.Host{Route: out})
	if err != nil || len(outcomes) != 1 {
		t.Fatalf("%d outcomes, %v", len(outcomes), err)
	}
	if got := binary.BigEndian.Uint16(outcomes[0].Packet.Data[10:]); got != 0xffff {
		t.Errorf("the checksum is %#x, want 0xffff", got)
	}
}
