package nfttest

import (
	"strings"
	"testing"
)

func TestNetlink(t *testing.T) {
	Require(t, Namespaces, NFT)
	r := &Ruleset{
		Family: "ip",
		Decls:  []string{"set blocked {\n\ttype ipv4_addr\n}"},
		Chains: []string{"next"},
		Rules:  []string{"ip saddr @blocked drop", "ip sadr 10.0.0.1 drop", "tcp dport { 80, 443 } goto next", "accept accept"},
	}
	got := New(t).Netlink(t, r)
	if len(got) != 2 {
		t.Fatalf("nft accepts %d rules, want 2: %v", len(got), got)
	}
	for i, want := range map[int]string{0: "[ lookup reg 1 set blocked ]", 2: "__set%d "} {
		if !strings.Contains(got[i], want) {
			t.Errorf("rule %d: %q, want %q in it", i, got[i], want)
		}
	}
	if got[2] = got[2][strings.Index(got[2], "  ["):]; !strings.Contains(got[2], "goto -> next") {
		t.Errorf("rule 2: %q, want its expressions", got[2])
	}
}

func TestScriptLines(t *testing.T) {
	r := &Ruleset{Family: "ip", Decls: []string{"set s {\n}"}, Rules: []string{"accept", "drop"}}
	script, lines := r.Script(map[int]bool{0: true})
	if len(lines) != 1 {
		t.Fatalf("lines = %v, want one", lines)
	}
	for at, i := range lines {
		if text := strings.Split(script, "\n")[at-1]; i != 1 || text != "drop" {
			t.Errorf("line %d is %q of rule %d, want drop of rule 1", at, text, i)
		}
	}
}
