package check

import (
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// sampleRuleset has something of everything that -o netlink prints.
const sampleRuleset = `table inet t {
	set s { type ipv4_addr; flags interval; elements = { 10.0.0.0/8, 192.168.0.1 comment "x" }; }
	set e { type ipv4_addr . inet_service; flags interval, timeout; timeout 1m; gc-interval 5s; elements = { 10.0.0.1 . 80-90 timeout 5s }; }
	set n { type ipv4_addr; size 5; policy memory; elements = { 10.0.0.9, 10.0.0.1 }; }
	map m { type inet_service : verdict; elements = { 80 : jump a, 22 : accept }; }
	map v { type ipv4_addr : mark; flags interval; elements = { 10.0.0.0/8 : 5, * : 6 }; }
	chain a { counter; }
	chain b {
		type filter hook input priority 0; policy drop
		tcp dport { 80, 90-100 } accept comment "hi"
		ip saddr @s drop
		tcp dport vmap @m
		ip saddr . tcp dport vmap { 10.0.0.1 . 80 : accept, * : drop }
	}
}
table ip u {
	chain x {
		ip saddr { 10.0.0.1, 10.0.0.0 } meta mark set ip daddr map { 10.0.0.1 : 1, 10.0.0.2 : 2 }
	}
}
`

// TestNetlinkAsNFT prints a file as "nft --debug=netlink" does, but for the lines
// about tables and base chains.
func TestNetlinkAsNFT(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	theirs, err := nfttest.New(t).Output(sampleRuleset, "nft", "--debug=netlink", "-c", "-f", "-")
	if err != nil {
		t.Fatal(err)
	}
	r := Run([]File{{Name: "ruleset", Text: sampleRuleset}})
	if len(r.Problems) > 0 {
		t.Fatal(r.Problems)
	}
	var ours strings.Builder
	if err := r.Netlink(&ours); err != nil {
		t.Fatal(err)
	}
	var want []string
	for line := range strings.Lines(theirs) {
		if !strings.Contains(line, "(null)") {
			want = append(want, strings.TrimRight(line, "\n"))
		}
	}
	if got := strings.TrimRight(ours.String(), "\n"); got != strings.TrimRight(strings.Join(want, "\n"), "\n") {
		t.Errorf("--- nft\n%s\n+++ ours\n%s", strings.Join(want, "\n"), got)
	}
}

// TestCheckJSON reads what nft -j lists.
func TestCheckJSON(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	ns.Nft(t, sampleRuleset)
	r := Run([]File{{Name: "list", Text: ns.Run(t, "nft", "-j", "list", "ruleset")}})
	if len(r.Problems) > 0 || r.Rules != 6 || r.Sets != 5 || r.Elements != 9 {
		t.Errorf("problems %v, %d rules, %d sets, %d elements", r.Problems, r.Rules, r.Sets, r.Elements)
	}
}
