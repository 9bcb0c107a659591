package counting_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/counting"
	"github.com/weft-proxy/weft/nft/eval/load"
	"github.com/weft-proxy/weft/nft/ruleset"
	"github.com/weft-proxy/weft/nft/syntax"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestRules copies each kind of statement.
func TestRules(t *testing.T) {
	for text, want := range map[string]string{
		"drop":                               `counter accept # would drop`,
		"tcp dport 22 counter accept":        `tcp dport 22 counter accept # would accept`,
		"reject with tcp reset":              `counter accept # would reject with tcp reset`,
		"ip daddr 10.0.0.1 dnat to 10.0.0.2": `ip daddr 10.0.0.1 counter accept # would dnat to 10.0.0.2`,
		"masquerade":                         `counter accept # would masquerade`,
		"queue to 3":                         `counter accept # would queue to 3`,
		"meta mark set 7":                    `counter # would meta mark set 7`,
		"ip ttl set 3 tcp dport 80 drop":     `tcp dport 80 counter accept # would ip ttl set 3, drop`,
		"notrack":                            `counter # would notrack`,
		"limit rate 3/second log prefix \"x\" drop":     `limit rate 3/second log prefix "x" counter accept # would drop`,
		"add @seen { ip saddr }":                        `add @seen { ip saddr }`,
		"jump other":                                    `jump other`,
		"return":                                        `return`,
		"tcp dport vmap { 22 : drop, 80 : accept }":     `tcp dport vmap { 22 : goto would-drop-, 80 : goto would-accept }`,
		"tcp dport vmap { 22 : jump other, 80 : drop }": `tcp dport vmap { 22 : jump other, 80 : goto would-drop- }`,
		"counter name \"hits\" drop":                    `counter name "hits" accept # would drop`,
		"ct helper set \"ftp\"":                         `counter # would ct helper set "ftp"`,
	} {
		tables := []nft.Table{{Family: nft.FamilyInet, Name: "t", Chains: []nft.Chain{{Name: "would-drop", Rules: []nft.Rule{{Text: text}}}}}}
		got := nfttest.Must(counting.Tables(tables))
		r := got[0].Chains[0].Rules[0]
		line := r.Text
		if r.Comment != "" {
			line += " # " + r.Comment
		}
		if line != want {
			t.Errorf("%s\n got %s\nwant %s", text, line, want)
		}
		if got[0].Name != "t-staged" || tables[0].Chains[0].Rules[0].Text != text {
			t.Errorf("table %s; the original is %s", got[0].Name, tables[0].Chains[0].Rules[0].Text)
		}
	}
}

// TestTables copies the declarations beside rules.
func TestTables(t *testing.T) {
	text := `table inet t {
	ct helper ftp { type "ftp" protocol tcp; }
	counter hits { }
	flowtable f { hook ingress priority 0; devices = { lo }; }
	map m { type ipv4_addr : verdict; elements = { 10.0.0.1 : drop, 10.0.0.2 : jump c } }
	chain c { type route hook output priority 0; policy drop; comment "c"; ip saddr vmap @m; }
}`
	tables, err := ruleset.Parse("t", text)
	if err == nil {
		tables, err = counting.Tables(tables)
	}
	if err != nil {
		t.Fatal(err)
	}
	got := ruleset.Format(tables)
	for _, want := range []string{"table inet t-staged", "counter hits", "10.0.0.1 : goto would-drop", "10.0.0.2 : jump c", "type filter hook output priority", "policy accept", "would drop: policy"} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
	for _, unwanted := range []string{"helper", "flowtable", "policy drop", "route"} {
		if strings.Contains(got, unwanted) {
			t.Errorf("%q is in\n%s", unwanted, got)
		}
	}
	if _, err := load.Tables(load.Part{Tables: tables}); err != nil {
		t.Errorf("it does not compile: %v", err)
	}
	_, err = counting.Tables([]nft.Table{{Family: nft.FamilyIP, Name: "t", Chains: []nft.Chain{{Name: "c", Rules: []nft.Rule{{Text: "drop"}, {Text: "ip saddr"}}}}}})
	if err == nil || !strings.Contains(err.Error(), "chain c in table ip t: rule 2: ") {
		t.Errorf("error %v", err)
	}
}

// harmless are the statements that do nothing to a packet.
var harmless = []syntax.Stmt{
	&syntax.Match{}, &syntax.Counter{}, &syntax.Limit{}, &syntax.Quota{}, &syntax.ConnLimit{}, &syntax.Log{}, &syntax.Dynamic{},
	&syntax.Meter{}, &syntax.Verdict{}, &syntax.Vmap{}, &syntax.ObjectRef{},
}

// TestCorpora copies every rule of package compile's corpora: the copy has only statements that
// do nothing, and copying it again changes nothing but comments.
func TestCorpora(t *testing.T) {
	n := 0
	for _, corpus := range nfttest.ReadCorpora(t, "../compile/testdata/corpus") {
		n += copyAll(t, corpus.Rules)
	}
	if n < 1000 {
		t.Errorf("%d rules, want 1000 at least", n)
	}
}

// copyAll copies rules, and returns how many parse.
func copyAll(t *testing.T, rules []string) (n int) {
	t.Helper()
	for _, text := range rules {
		tables, err := counting.Tables([]nft.Table{{Family: nft.FamilyInet, Name: "t", Chains: []nft.Chain{{Name: "c", Rules: []nft.Rule{{Text: text}}}}}})
		if err != nil {
			continue // it does not parse
		}
		n++
		copied := tables[0].Chains[0].Rules[0].Text
		parsed, err := syntax.ParseRule(nft.FamilyInet, copied)
		if err != nil {
			t.Errorf("%s: the copy %q: %v", text, copied, err)
			continue
		}
		for _, s := range parsed.Stmts {
			if !slices.ContainsFunc(harmless, func(h syntax.Stmt) bool { return reflect.TypeOf(h) == reflect.TypeOf(s) }) {
				t.Errorf("%s: the copy %q has a %T", text, copied, s)
			}
			if v, ok := s.(*syntax.Verdict); ok && v.Kind == "drop" {
				t.Errorf("%s: the copy %q drops", text, copied)
			}
		}
		again, err := counting.Tables(tables)
		if err != nil || again[0].Chains[0].Rules[0].Text != copied {
			t.Errorf("%s: the copy %q, and copied again %q, error %v", text, copied, again[0].Chains[0].Rules[0].Text, err)
		}
	}
	return n
}
