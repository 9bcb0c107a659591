package compile

import (
	"errors"
	"runtime"
	"testing"

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
		for i, rule := range c.rules {
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

// BenchmarkCompileCorpus parses and compiles all rules of the corpora. It reports the time per rule.
func BenchmarkCompileCorpus(b *testing.B) {
	type input struct {
		scope *corpus
		rule  nft.Rule
	}
	var rules []input
	for _, c := range readCorpora(b) {
		for _, text := range c.rules {
			if _, err := CompileRule(c.family, nft.Rule{Text: text}, c); err == nil {
				rules = append(rules, input{c, nft.Rule{Text: text}})
			}
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n := 0
	for b.Loop() {
		for _, in := range rules {
			if _, err := CompileRule(in.scope.family, in.rule, in.scope); err != nil {
				b.Fatal(err)
			}
		}
		n += len(rules)
	}
	runtime.ReadMemStats(&after)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/rule")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(n), "allocs/rule")
	b.ReportMetric(float64(len(rules)), "rules")
}
