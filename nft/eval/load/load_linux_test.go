package load_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/eval"
	"github.com/weft-proxy/weft/nft/eval/load"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/ruleset"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// rules has sets of all kinds, named and anonymous.
const rules = `table inet f {
	set exact { type ipv4_addr; elements = { 10.0.0.1, 10.0.0.9 }; }
	set joined { type ipv4_addr . inet_service; flags interval; elements = { 10.0.0.0/30 . 50-60, 10.0.0.9 . 80 }; }
	map verdicts { type ipv4_addr : verdict; flags interval; elements = { 10.0.0.4-10.0.0.7 : drop, 10.0.0.8 : jump side, * : continue }; }
	chain side {
		udp dport { 53, 60-70 } meta mark set 7 return
	}
	chain c {
		type filter hook forward priority 0;
		ip daddr @exact counter comment "one"
		ip daddr . udp dport @joined counter accept
		ip daddr vmap @verdicts
	}
}
`

// udp returns a packet to an address and port.
func udp(to netip.Addr, port uint16) eval.Packet {
	a := to.As4()
	data := []byte{0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, a[0], a[1], a[2], a[3], 4, 0, byte(port >> 8), byte(port), 0, 8, 0, 0}
	return eval.Packet{Data: data, In: eval.Interface{Index: 1, Name: "in"}}
}

// evaluate returns the outcome of a forwarded packet as text.
func evaluate(t testing.TB, r *eval.Ruleset, p eval.Packet) string {
	t.Helper()
	out := func(*eval.Packet) (eval.Route, bool) {
		return eval.Route{Out: eval.Interface{Index: 2, Name: "out"}}, true
	}
	outcomes, complete, err := eval.Evaluate(r, p, eval.Host{Route: out})
	if err != nil || !complete || len(outcomes) != 1 {
		t.Fatalf("%d outcomes, complete %v, %v, want 1", len(outcomes), complete, err)
	}
	o := outcomes[0]
	text := fmt.Sprintf("%s %s mark %d", o.Verdict, o.Reason, o.Packet.Mark)
	for _, s := range o.Steps {
		text += fmt.Sprintf("\n%s %s", s.Chain, s.Verdict)
		if s.Matched != nil {
			text += " " + s.Matched.Comment
		}
	}
	return text
}

// parse compiles the text of a ruleset.
func parse(text string) *eval.Ruleset {
	return nfttest.Must(load.Tables(load.Part{Tables: nfttest.Must(ruleset.Parse("test", text))}))
}

// openReader opens a Reader of a namespace.
func openReader(t testing.TB, ns *nfttest.NS) *kernel.Reader {
	t.Helper()
	reader := nfttest.Must(kernel.OpenReader(kernel.Config{NetNS: ns.FD()}))
	t.Cleanup(func() {
		if err := reader.Close(); err != nil {
			t.Error(err)
		}
	})
	return reader
}

// read reads a ruleset.
func read(reader *kernel.Reader) *eval.Ruleset {
	return nfttest.Must(load.Kernel(reader))
}

// TestSources loads the same rules from the kernel and from text: packets have the same
// outcomes.
func TestSources(t *testing.T) {
	ns := nfttest.New(t)
	ns.Nft(t, rules)
	fromKernel, fromText := read(openReader(t, ns)), parse(rules)
	var seen []string
	for last := range byte(11) {
		for _, port := range []uint16{49, 50, 53, 60, 65, 70, 71, 80} {
			p := udp(netip.AddrFrom4([4]byte{10, 0, 0, last}), port)
			got, want := evaluate(t, fromKernel, p), evaluate(t, fromText, p)
			if got != want {
				t.Errorf("10.0.0.%d port %d: from the kernel\n%s\nfrom text\n%s", last, port, got, want)
			}
			if strings.Contains(got, "undecided") {
				t.Errorf("10.0.0.%d port %d: %s", last, port, got)
			}
			if !slices.Contains(seen, got) {
				seen = append(seen, got)
			}
		}
	}
	if len(seen) < 6 {
		t.Errorf("%d different outcomes, want 6 at least:\n%s", len(seen), strings.Join(seen, "\n\n"))
	}
}

// TestWords reads rules of another program: they have the words that nft lists, without counts, and one that has none is
// named by its handle.
func TestWords(t *testing.T) {
	ns := nfttest.New(t)
	ns.Nft(t, `table inet f { set blocked { type ipv4_addr; flags interval; }; chain side { }; chain c {
		type filter hook forward priority 0;
		ip saddr 10.0.0.0/8 tcp dport { 22, 80 } counter packets 3 bytes 180 drop comment "no"
		meta skuid 1000 ip daddr @blocked reject
		iifname "eth*" ct state vmap { invalid : drop, new : jump side }
		ip6 flowlabel 0x10000/5 accept
	}; }`)
	reader := openReader(t, ns)
	for _, c := range read(reader).Tables[0].Chains {
		if c.Decl.Name != "c" {
			continue
		}
		rules := nfttest.Must(c.Load())
		var got []string
		for i := range rules {
			got = append(got, rules[i].String())
		}
		want := []string{
			"ip saddr 10.0.0.0/8 tcp dport { 22, 80 } counter drop", "meta skuid 1000 ip daddr @blocked reject with icmp port-unreachable",
			`iifname "eth*" ct state vmap { invalid : drop, new : jump side }`, fmt.Sprint("handle ", rules[3].Handle),
		}
		if !slices.Equal(got, want) {
			t.Errorf("rules\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// TestRejectedRule evaluates a rule that weft does not compile: the outcome says so.
func TestRejectedRule(t *testing.T) {
	c := nft.Chain{Name: "c", Type: "filter", Hook: "forward", Priority: "filter", Rules: []nft.Rule{{Text: "counter"}, {Text: "ip daddr @none drop"}}}
	r := nfttest.Must(load.Tables(load.Part{Tables: []nft.Table{{Family: nft.FamilyIP, Name: "t", Chains: []nft.Chain{c}}}}))
	got := evaluate(t, r, udp(netip.MustParseAddr("10.0.0.1"), 53))
	if !strings.HasPrefix(got, "undecided ") || !strings.Contains(got, "none") || strings.Count(got, "\n") != 1 {
		t.Errorf("%s, want undecided after the first rule, with the error of the second", got)
	}
}

// TestParts joins two parts of a table: a chain that one declares without its hook, a set whose
// elements both have, and a rule that refers to what comes later.
func TestParts(t *testing.T) {
	part := func(owner, text string) load.Part {
		return load.Part{Owner: owner, Tables: nfttest.Must(ruleset.Parse(owner, text))}
	}
	one := part("one", `table ip t {
		map verdicts { type ipv4_addr : verdict; elements = { 10.0.0.1 : drop }; }
		chain c { ip daddr @later drop }
	}`)
	two := part("two", `table ip t {
		set later { type ipv4_addr; elements = { 10.0.0.9 }; }
		map verdicts { type ipv4_addr : verdict; elements = { 10.0.0.1 : accept, 10.0.0.2 : drop }; }
		chain c { type filter hook forward priority 0; ip daddr vmap @verdicts; }
	}`)
	r := nfttest.Must(load.Tables(one, two))
	c := r.Tables[0].Chains[0]
	got := fmt.Sprintf("%d %d %s", len(r.Tables), len(r.Tables[0].Chains), c.Owner)
	for _, s := range r.Tables[0].Sets {
		got += " " + s.Decl.Name + " of " + s.Owner
	}
	for _, rule := range c.Rules {
		got += fmt.Sprintf(" %d of %s", rule.Handle, rule.Owner)
	}
	if want := "1 1 two verdicts of one later of two 1 of one 2 of two"; got != want {
		t.Errorf("joined %s, want %s", got, want)
	}
	for last, want := range map[byte]string{1: "drop", 2: "drop", 3: "accept", 9: "drop"} {
		if got := evaluate(t, r, udp(netip.AddrFrom4([4]byte{10, 0, 0, last}), 53)); !strings.HasPrefix(got, want) {
			t.Errorf("10.0.0.%d: %s, want %s", last, got, want)
		}
	}
	bad := part("bad", `table ip t { set later { type ipv4_addr; elements = { 10.0.0.0/8 }; }; }`)
	if _, err := load.Tables(one, bad); err == nil || !slices.Contains(strings.Fields(err.Error()), `"10.0.0.0/8"`) {
		t.Errorf("an element that the set cannot have: %v", err)
	}
}
