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

// TestFamilies compiles in every family: no panic, and the family is the
// rule's.
func TestFamilies(t *testing.T) {
	for _, family := range []nft.Family{nft.FamilyIP, nft.FamilyIP6, nft.FamilyInet, nft.FamilyARP, nft.FamilyBridge, nft.FamilyNetdev} {
		for _, text := range []string{"accept", "meta mark 1", "tcp dport 80", "ip saddr 10.0.0.1", "reject", "icmp type 8", "icmpv6 type 128"} {
			rule, err := CompileRule(family, nft.Rule{Text: text}, nil)
			if err == nil && rule.Family != family {
				t.Errorf("%s %s: family %s", family, text, rule.Family)
			}
		}
	}
}

func BenchmarkCompileRule(b *testing.B) {
	for _, c := range readCorpora(b) {
		if c.name != "dataplane.txt/ip" {
			continue
		}
		for _, bench := range []struct{ name, text string }{
			{"match", "ip saddr 10.0.0.1 tcp dport 80 accept"},
			{"vmap", "ip daddr . meta l4proto . th dport vmap @services"},
			{"set", "meta l4proto { tcp, udp, sctp } dnat ip to ip daddr . meta l4proto . th dport . numgen random mod 3 map @endpoints"},
		} {
			b.Run(bench.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := CompileRule(c.family, nft.Rule{Text: bench.text}, c); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkCompileCorpus parses and compiles all rules of the corpora: what it reports is
// per rule.
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

func BenchmarkParseRule(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := syntax.ParseRule(nft.FamilyIP, "ip saddr 10.0.0.1 tcp dport 80 accept"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	rule, err := CompileRule(nft.FamilyIP, nft.Rule{Text: "meta l4proto { tcp, udp } th dport 80 accept"}, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := rule.Encode(5); err != nil {
			b.Fatal(err)
		}
	}
}
