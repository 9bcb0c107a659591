package compile

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/google/nftables/expr"

	"github.com/weft-proxy/weft/nft"
)

// TestAppendMatchesLibrary compares our marshalling of the library's
// expressions with its own, for all expressions of the corpora.
func TestAppendMatchesLibrary(t *testing.T) {
	known, compared := map[string]bool{}, 0
	for _, c := range readCorpora(t) {
		for _, text := range c.rules {
			rule, err := CompileRule(c.family, nft.Rule{Text: text}, c)
			if err != nil {
				continue
			}
			for _, e := range rule.Exprs {
				k, ok := e.(kernelExpr)
				if !ok {
					continue
				}
				got, ok := appendKernelExpr(nil, k.Any)
				if !ok {
					continue
				}
				want, err := k.Marshal(uint8(c.family))
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("%s: %s\n got %x\nwant %x", text, e, got, want)
				}
				known[reflect.TypeOf(k.Any).String()] = true
				compared++
			}
		}
	}
	if len(known) != 6 || compared < 100 {
		t.Errorf("compared %d expressions of %d kinds: want six kinds", compared, len(known))
	}
}

// TestOwnExpressions marshals, unmarshals and prints each of our own
// expressions.
func TestOwnExpressions(t *testing.T) {
	for _, tt := range []struct {
		name  string
		e     Expr
		blank interface {
			Expr
			Unmarshal([]byte) error
		}
		dump string
	}{
		{"bitwise", &Bitwise{Source: 1, Dest: 1, Len: 4, Mask: []byte{255, 0, 0, 0}, Xor: []byte{0, 0, 0, 1}}, &Bitwise{}, "bitwise reg 1 = ( reg 1 & 0x000000ff ) ^ 0x01000000"},
		{"bitwise", &Bitwise{Source: 1, Dest: 9, Len: 4, Op: BitwiseLshift, Shift: 8}, &Bitwise{}, "bitwise reg 9 = ( reg 1 << 0x00000008 )"},
		{"bitwise", &Bitwise{Source: 1, Dest: 1, Len: 1, Op: BitwiseRshift, Shift: 2}, &Bitwise{}, "bitwise reg 1 = ( reg 1 >> 0x00000002 )"},
		{"ct", &CT{Key: ctDstIP, Register: 1, Dir: directionReply}, &CT{}, "ct load dst_ip => reg 1 , dir reply"},
		{"ct", &CT{Key: 3, Register: 1, Set: true, Dir: noDirection}, &CT{}, "ct set mark with reg 1"},
		{"masq", &Masq{MinPort: 1, MaxPort: 2, Flags: 6}, &Masq{}, "masq proto_min reg 1 proto_max reg 2 flags 0x6"},
		{"dynset", &Dynset{Op: 1, Key: 1, Data: 2, SetName: "s", SetID: 3, Timeout: 5 * time.Second}, &Dynset{}, "dynset update reg_key 1 set s sreg_data 2 timeout 5000ms"},
	} {
		b, err := tt.e.Marshal(2)
		if err != nil {
			t.Errorf("%s: marshal: %v", tt.name, err)
			continue
		}
		name, data, err := unmarshalNamed(b)
		if err != nil || name != tt.name {
			t.Errorf("%s: name %q, %v", tt.name, name, err)
		}
		if err := tt.blank.Unmarshal(data); err != nil || !reflect.DeepEqual(tt.blank, tt.e) {
			t.Errorf("%s: unmarshal: %+v, %v: want %+v", tt.name, tt.blank, err, tt.e)
		}
		if got := tt.e.String(); got != tt.dump {
			t.Errorf("%s: %q: want %q", tt.name, got, tt.dump)
		}
		for n := range data {
			_ = tt.blank.Unmarshal(data[:n]) // must not panic
		}
	}
	if _, err := (&Bitwise{Op: 9}).Marshal(2); err == nil {
		t.Error("bitwise with an unknown operation was marshalled")
	}
}

// TestDumpKnowsAll fails if an expression that rules compile to has no dump.
func TestDumpKnowsAll(t *testing.T) {
	if got := dumpKernelExpr(&expr.Socket{}); got != "unknown *expr.Socket" {
		t.Errorf("dump of an expression that no rule has: %q", got)
	}
	for _, c := range readCorpora(t) {
		for _, text := range c.rules {
			rule, err := CompileRule(c.family, nft.Rule{Text: text}, c)
			if err == nil && bytes.Contains([]byte(rule.Dump()), []byte("unknown")) {
				t.Errorf("%s: %s", text, rule.Dump())
			}
		}
	}
}

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
	if len(rule.encoded.ids) != 2 {
		t.Errorf("ids %v: want two", rule.encoded.ids)
	}
	byHand := &Rule{Family: rule.Family, Exprs: rule.Exprs}
	if got, err := byHand.Encode(0); err != nil || !bytes.Equal(got, zero) {
		t.Errorf("rule without a cache: %x, %v", got, err)
	}
}

// TestFingerprint depends on what the kernel sees and on the comment, not on
// how the rule is written.
func TestFingerprint(t *testing.T) {
	print := func(family nft.Family, text, comment string) Fingerprint {
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
	for _, b := range []Fingerprint{
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
