package compile

import (
	"bytes"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/userdata"
)

// TestEncode gives each anonymous set its number, and no named one.
func TestEncode(t *testing.T) {
	rule, err := CompileRule(nft.FamilyIP, nft.Rule{Text: "meta l4proto { tcp, udp } th dport vmap { 80 : accept } drop"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	zero, err := rule.Encode(0)
	if err != nil {
		t.Fatal(err)
	}
	base, err := rule.Encode(0x01020300)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []byte{1, 2} {
		if n := bytes.Count(base, []byte{8, 0, 4, 0, 1, 2, 3, id}); n != 1 {
			t.Errorf("set %d with a base is %d times in %x", id, n, base)
		}
	}
	if n := numberedSets(t, rule); n != 2 {
		t.Errorf("%d anonymous sets are numbered: want 2", n)
	}
	byHand := &Rule{Family: rule.Family, Exprs: rule.Exprs}
	if got, err := byHand.Encode(0); err != nil || !bytes.Equal(got, zero) {
		t.Errorf("rule without a cache: %x, %v", got, err)
	}
}

// numberedSets counts the numbers of anonymous sets in a rule's expressions.
func numberedSets(t *testing.T, rule *Rule) int {
	t.Helper()
	zero, err := rule.Encode(0)
	if err != nil {
		t.Fatal(err)
	}
	const base = 1 << 24 // changes the first byte of each number
	based, err := rule.Encode(base)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i := range zero {
		if zero[i] != based[i] {
			n++
		}
	}
	return n
}

// TestFingerprint depends on what the kernel sees and on the comment, not on
// how the rule is written.
func TestFingerprint(t *testing.T) {
	print := func(family nft.Family, text, comment string) userdata.Fingerprint {
		t.Helper()
		r, err := CompileRule(family, nft.Rule{Text: text, Comment: comment}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r.Fingerprint
	}
	a := print(nft.FamilyIP, "tcp dport 80 accept", "")
	if a != print(nft.FamilyIP, "meta  l4proto tcp tcp dport http accept", "") {
		t.Error("the same rule in other words has another fingerprint")
	}
	for _, b := range []userdata.Fingerprint{
		print(nft.FamilyIP6, "tcp dport 80 accept", ""), print(nft.FamilyIP, "tcp dport 80 accept", "x"),
		print(nft.FamilyIP, "tcp dport 81 accept", ""), print(nft.FamilyIP, "tcp dport { 80, 81 } accept", ""),
	} {
		if a == b {
			t.Error("another rule has the same fingerprint")
		}
	}
	if print(nft.FamilyIP, "tcp dport { 80, 81 }", "") == print(nft.FamilyIP, "tcp dport { 80, 82 }", "") {
		t.Error("elements of an anonymous set are not in the fingerprint")
	}
	if print(nft.FamilyIP, "accept comment \"x\"", "") != print(nft.FamilyIP, "accept", "x") {
		t.Error("a comment in the text is another comment")
	}
}
