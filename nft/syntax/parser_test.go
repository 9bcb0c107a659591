package syntax

import (
	"errors"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
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
	r, err := ParseRule(nft.FamilyIP, "ip saddr 10.0.0.1\n")
	if err != nil {
		t.Fatal(err)
	}
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
