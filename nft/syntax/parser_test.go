package syntax

import (
	"errors"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

func TestParseRuleBounds(t *testing.T) {
	for name, text := range map[string]string{
		"parentheses": "meta mark & " + strings.Repeat("(", 1000) + "1" + strings.Repeat(")", 1000) + " == 1",
		"operations":  "meta mark set meta mark" + strings.Repeat(" | 1", 1000),
		"length":      "tcp dport { " + strings.Repeat("1, ", MaxRuleLength) + "1 }",
	} {
		rule, err := ParseRule(nft.FamilyIP, text)
		var e *Error
		if rule != nil || !errors.As(err, &e) || !e.Pos.IsValid() {
			t.Errorf("%s: rule %v, error %v: want an error with a place", name, rule != nil, err)
		}
	}
	deep := "meta mark & " + strings.Repeat("(", MaxDepth-1) + "1" + strings.Repeat(")", MaxDepth-1) + " == 1"
	if _, err := ParseRule(nft.FamilyIP, deep); err != nil {
		t.Errorf("nesting just within the bound: %v", err)
	}
	long := "tcp dport { " + strings.Repeat("1, ", 20000) + "1 }"
	if _, err := ParseRule(nft.FamilyIP, long); err != nil {
		t.Errorf("length just within the bound: %v", err)
	}
}

func TestParsePositions(t *testing.T) {
	r := nfttest.Must(ParseRule(nft.FamilyIP, "ip saddr 10.0.0.1\n"))
	m := r.Stmts[0].(*Match)
	if m.Left.Position() != (Pos{Line: 1, Column: 1}) || m.Right.Position() != (Pos{Line: 1, Column: 10}) || m.OpPos != (Pos{Line: 1, Column: 10}) {
		t.Errorf("left %v, right %v, operator %v", m.Left.Position(), m.Right.Position(), m.OpPos)
	}
	if r.Family != nft.FamilyIP {
		t.Errorf("family %v", r.Family)
	}
}

// TestErrorExcerpt draws the caret below the token, whatever is before it.
func TestErrorExcerpt(t *testing.T) {
	for text, want := range map[string]string{
		"ip saddr 10.0.0.1 !":             "ip saddr 10.0.0.1 !\n                  ^",
		"\ttcp dport {\n\t\t22,\n\t\t; }": "\t\t; }\n\t\t^",
		"log prefix \"äö\" }":             "log prefix \"äö\" }\n                ^",
	} {
		_, err := ParseRule(nft.FamilyIP, text)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := e.Excerpt(); got != want {
			t.Errorf("%q: excerpt\n%s\nwant\n%s", text, got, want)
		}
	}
	if got := (&Error{Msg: "x"}).Excerpt(); got != "" {
		t.Errorf("excerpt of an error without a place: %q", got)
	}
}

// FuzzParseRule parses anything: no panic, no rule beside an error, a place in
// every error, and the same tree after printing.
func FuzzParseRule(f *testing.F) {
	for i, text := range corpusRules(f) {
		if i%5 == 0 {
			f.Add(text)
		}
	}
	for _, s := range samples {
		f.Add(s.in)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRule(nft.FamilyInet, text)
		if err != nil {
			var e *Error
			if r != nil || !errors.As(err, &e) || !e.Pos.IsValid() {
				t.Fatalf("rule %v, error without a place: %v", r, err)
			}
			_ = e.Excerpt()
			return
		}
		roundTrip(t, r)
	})
}

// FuzzParseTypeOf is FuzzParseRule for typeof declarations.
func FuzzParseTypeOf(f *testing.F) {
	f.Add("ip daddr . meta l4proto . th dport : verdict")
	f.Add("ip saddr : interval ip daddr . th dport")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseTypeOf(text)
		if err != nil {
			var e *Error
			if d != nil || !errors.As(err, &e) {
				t.Fatalf("declaration %v beside error %v", d, err)
			}
			return
		}
		again, err := ParseTypeOf(PrintTypeOf(d))
		if err != nil || PrintTypeOf(again) != PrintTypeOf(d) {
			t.Fatalf("%q: %v", PrintTypeOf(d), err)
		}
	})
}

// TestUnsupported checks the errors of statements that nft(8) accepts and weft does not.
// The error is at the unknown word, not after it.
func TestUnsupported(t *testing.T) {
	for text, want := range map[string]string{
		"tcp dport 80 xt target MARK":                   "1:14: xt statements are extensions of iptables, which nft(8) can list but not load: write the rule in nft's own words",
		"tcp dport 80 last":                             "1:14: nft 1.0.7 has last; weft does not",
		"udp dport 4789 vxlan ip saddr 192.0.2.1":       "1:16: nft 1.0.7 has vxlan; weft does not",
		"gre version 0":                                 "1:1: nft 1.0.7 has gre; weft does not",
		"meta broute set 1":                             "1:1: nft 1.0.7 has meta broute; weft does not",
		"icmpv6 taddr fe80::1":                          "1:1: nft 1.0.9 has icmpv6 taddr; weft does not",
		"iifname . meta ibrhwaddr { lo . 0:0:0:0:0:0 }": "1:11: nft 1.1.6 has meta ibrhwaddr; weft does not",
		"meta mark set ct mark | meta mark":             "1:25: nft 1.1.2 has a selector after |, on Linux 6.13; weft has only constants there",
		"fib daddr check vmap { missing : drop }":       "1:11: nft 1.1.4 has fib check as a value; weft has only \"check exists\" and \"check missing\"",
		"log prefix group 5":                            `1:12: unexpected "group": want a log prefix in double quotes`,
		"jump { accept }":                               "1:6: a chain in braces is possible only in the rules of a file: declare a chain, and write its name here",
	} {
		if _, err := ParseRule(nft.FamilyInet, text); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{"ip6 nexthdr frag accept", "counter", "meta l4proto tcp counter accept", "oifname socket drop", "fib daddr . iif check missing drop", "meta protocol gre"} {
		if _, err := ParseRule(nft.FamilyInet, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
