package eval_test

import (
	"net/netip"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/eval"
	"github.com/weft-proxy/weft/nft/object"
)

// TestReplyIsTranslatedBack evaluates a packet with translated source and destination, and then its
// reply with the connection of the outcome.
func TestReplyIsTranslatedBack(t *testing.T) {
	rules := filter(t, "ct original ip daddr 10.96.0.1 ct reply ip saddr 10.2.0.2 ct status dnat accept", "drop")
	chain := func(name string, hook uint32, priority int32, text string) eval.Chain {
		r, err := compile.CompileRule(nft.FamilyIP, nft.Rule{Text: text}, scope{})
		if err != nil {
			t.Fatal(err)
		}
		return eval.Chain{Decl: &object.Chain{Name: name, Base: &object.Base{Type: "nat", Hook: hook, Priority: priority}}, Rules: []eval.Rule{{Handle: 99, Exprs: r.Exprs}}}
	}
	tables := rules.Tables
	tables[0].Chains = append(tables[0].Chains, chain("dnat", 0, -100, "meta l4proto tcp dnat ip to 10.2.0.2:8080"), chain("snat", 4, 100, "snat ip to 10.2.0.9"))
	client, service := netip.MustParseAddrPort("10.1.0.1:40000"), netip.MustParseAddrPort("10.96.0.1:80")
	p := eval.Packet{Data: segment(client, service), In: eval.Interface{Index: 1, Name: "in"}, Conn: &eval.Conn{State: eval.StateNew}}
	first := one(t, rules, p)
	if src, dst := first.Packet.Source(), first.Packet.Destination(); src.String() != "10.2.0.9" || dst.String() != "10.2.0.2" {
		t.Fatalf("the packet leaves from %s to %s, want 10.2.0.9 to 10.2.0.2", src, dst)
	}
	conn := *first.Packet.Conn
	conn.State, conn.Reply = eval.StateEstablished, true
	back := one(t, rules, eval.Packet{Data: segment(netip.MustParseAddrPort("10.2.0.2:8080"), netip.MustParseAddrPort("10.2.0.9:40000")), In: eval.Interface{Index: 2, Name: "out"}, Conn: &conn})
	if src, dst := back.Packet.Source(), back.Packet.Destination(); src != service.Addr() || dst != client.Addr() {
		t.Errorf("the reply leaves from %s to %s, want %s to %s", src, dst, service.Addr(), client.Addr())
	}
	if port := [2]byte(back.Packet.Data[20:22]); port != [2]byte{0, 80} {
		t.Errorf("the reply leaves from port %d, want 80", port)
	}
	// Without the addresses of the connection it is not known.
	conn = eval.Conn{State: eval.StateEstablished, NAT: true}
	outcomes, _, err := eval.Evaluate(rules, eval.Packet{Data: segment(client, service), In: eval.Interface{Index: 1, Name: "in"}, Conn: &conn}, eval.Host{Route: out})
	if err != nil || len(outcomes) != 1 || outcomes[0].Verdict != eval.Undecided {
		t.Errorf("outcomes %+v, %v: want undecided", outcomes, err)
	}
}

// one evaluates a packet that has one outcome and is accepted.
func one(t *testing.T, rules *eval.Ruleset, p eval.Packet) eval.Outcome {
	t.Helper()
	outcomes, _, err := eval.Evaluate(rules, p, eval.Host{Route: out})
	if err != nil || len(outcomes) != 1 || outcomes[0].Verdict != eval.Accept {
		t.Fatalf("outcomes %+v, %v: want one that is accepted", outcomes, err)
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
