package eval_test

import (
	"net/netip"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/eval"
	"github.com/weft-proxy/weft/nft/object"
)

// TestNotrack: a rule before connection tracking takes the connection from a packet, and one after it
// does not.
func TestNotrack(t *testing.T) {
	p := eval.Packet{Data: segment(netip.MustParseAddrPort("10.1.0.1:40000"), netip.MustParseAddrPort("10.2.0.2:80")), In: eval.Interface{Index: 1, Name: "in"}}
	for priority, state := range map[int32]string{-300: "untracked", -150: "new"} {
		r, err := compile.CompileRule(nft.FamilyIP, nft.Rule{Text: "notrack"}, scope{})
		if err != nil {
			t.Fatal(err)
		}
		rules := filter(t, "ct state "+state+" accept", "drop")
		tables := rules.Tables
		tables[0].Chains = append(tables[0].Chains, eval.Chain{Decl: &object.Chain{Name: "raw", Base: &object.Base{Type: "filter", Priority: priority}}, Rules: []eval.Rule{{Handle: 99, Exprs: r.Exprs}}})
		p.Conn = &eval.Conn{State: eval.StateNew}
		one(t, rules, p)
	}
}
