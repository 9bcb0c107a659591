package compile

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/syntax"
)

// FuzzCompileRule compiles anything: no panic, no rule beside an error, every
// error of the text has a place, and the canonical text compiles to the same
// rule again.
func FuzzCompileRule(f *testing.F) {
	var scopes []*corpus
	for _, c := range readCorpora(f) {
		scopes = append(scopes, c)
		for i, rule := range c.Rules {
			if i%7 == 0 {
				f.Add(uint8(len(scopes)-1), rule)
			}
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, text string) {
		c := scopes[int(which)%len(scopes)]
		rule, err := CompileRule(c.family, nft.Rule{Text: text}, c)
		if err != nil {
			var e *syntax.Error
			if rule != nil || !errors.As(err, &e) || !e.Pos.IsValid() {
				t.Fatalf("rule %v, error without a place: %v", rule, err)
			}
			return
		}
		b, err := rule.Encode(7)
		if err != nil || len(b) == 0 {
			t.Fatalf("encode: %d bytes, %v", len(b), err)
		}
		_ = rule.Dump()
		again, err := CompileRule(c.family, nft.Rule{Text: rule.Text, Comment: rule.Comment}, c)
		if err != nil {
			t.Fatalf("canonical text %q: %v", rule.Text, err)
		}
		if again.Fingerprint != rule.Fingerprint || again.Text != rule.Text {
			t.Fatalf("canonical text %q is another rule: %q", rule.Text, again.Text)
		}
	})
}

// hostile are texts that an attacker might make longer and longer; n is the number of
// their pieces. Whether they compile does not matter.
var hostile = []struct {
	name string
	text func(n int) string
}{
	{"statements", func(n int) string { return strings.Repeat("meta mark 1 ", n) }},
	{"payloads", func(n int) string { return strings.Repeat("ip saddr 10.0.0.1 ip daddr 10.0.0.2 ", n/2) }},
	{"operations", func(n int) string { return "meta mark set meta mark" + strings.Repeat(" | 1", n) }},
	{"parentheses", func(n int) string { return strings.Repeat("(", n) }},
	{"braces", func(n int) string { return "tcp dport " + strings.Repeat("{ ", n) }},
	{"concatenation", func(n int) string { return "ip saddr" + strings.Repeat(" . ip daddr", n) + " @s" }},
	{"set", func(n int) string { return "meta mark { " + pieces(n, "%d") + " }" }},
	{"ranges", func(n int) string { return "meta mark { " + pieces(n, "%[1]d00-%[1]d50") + " }" }},
	{"overlaps", func(n int) string { return "meta mark { " + pieces(n, "0-%d") + " }" }},
	{"map", func(n int) string { return "meta mark vmap { " + pieces(n, "%d : accept") + " }" }},
	{"flags", func(n int) string { return "tcp flags " + strings.Repeat("syn,", n) + "syn" }},
	{"word", func(n int) string { return strings.Repeat("a", 4*n) }},
	{"digits", func(n int) string { return "meta mark " + strings.Repeat("1", 4*n) }},
	{"colons", func(n int) string { return "ip6 saddr " + strings.Repeat("1:", 2*n) }},
	{"dots", func(n int) string { return "ip saddr " + strings.Repeat("1.", 2*n) }},
	{"comment", func(n int) string { return "accept comment \"" + strings.Repeat("#", 4*n) }},
	{"lines", func(n int) string { return strings.Repeat("\n", 4*n) + "accept" }},
}

// pieces joins n pieces with commas.
func pieces(n int, format string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, format, i+1)
	}
	return b.String()
}

// BenchmarkHostile compiles hostile texts of a length and of four times that length, in
// turn: the ratio of the two is about 4 where the cost is linear.
func BenchmarkHostile(b *testing.B) {
	const n = 800
	for _, h := range hostile {
		b.Run(h.name, func(b *testing.B) {
			var took [2]time.Duration
			texts := [2]string{h.text(n), h.text(4 * n)}
			if len(texts[1]) > syntax.MaxRuleLength {
				b.Fatalf("%d bytes are refused for their length", len(texts[1]))
			}
			for b.Loop() {
				for i, text := range texts {
					began := time.Now()
					_, _ = CompileRule(nft.FamilyIP, nft.Rule{Text: text}, nil)
					took[i] += time.Since(began)
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(took[1].Microseconds())/float64(b.N), "us")
			b.ReportMetric(float64(took[1])/float64(took[0]), "four-times-ratio")
		})
	}
}
