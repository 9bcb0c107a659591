package load_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft/eval/load"
	"github.com/weft-proxy/weft/nft/ruleset"
)

// TestParts joins two parts of a table: a chain that one declares without its hook, a set whose
// elements both have, and a rule that refers to what comes later.
func TestParts(t *testing.T) {
	part := func(owner, text string) load.Part {
		tables, err := ruleset.Parse(owner, text)
		if err != nil {
			t.Fatal(err)
		}
		return load.Part{Owner: owner, Tables: tables}
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
	r, err := load.Tables(one, two)
	if err != nil {
		t.Fatal(err)
	}
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
