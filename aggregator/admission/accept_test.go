package admission

import (
	"slices"
	"strings"
	"testing"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
)

// TestHonouring gives each base chain of a publisher that honours accepts a first rule, also one without rules, and
// counts only the publisher's rules in violations.
func TestHonouring(t *testing.T) {
	control := configured(t, "accept: {publishers: [q], mark: 0x10}}\n- {name: q, match: {uid: 2}")
	finish := func(rules ...string) (*desired.Update, []string) {
		c := &weftv1.Chain{Name: "c", Type: "filter", Hook: "forward", Priority: "0"}
		for _, text := range rules {
			c.Rules = append(c.Rules, &weftv1.Rule{Text: text})
		}
		b := NewSnapshot(Config{Access: control}, desired.Key{Publisher: "p", Name: "f"}, nowhere{})
		b.AddFragment(&weftv1.Fragment{Name: "f", Tables: []*weftv1.Table{{Family: "ip", Name: "p", Chains: []*weftv1.Chain{c, {Name: "d"}}}}})
		u, err := b.Finish()
		return u, violationsOf(control, err)
	}
	const first = "meta mark & 0x00000010 == 0x00000010 accept"
	for _, rules := range [][]string{nil, {"drop"}} {
		u, bad := finish(rules...)
		if len(bad) > 0 {
			t.Fatalf("rules %q: %s", rules, bad)
		}
		var got []string
		for _, c := range u.Tables[0].PutChains {
			for _, r := range c.Rules {
				got = append(got, r.Text)
			}
		}
		if want := append([]string{first}, rules...); !slices.Equal(got, want) {
			t.Errorf("rules %q become %q, want %q", rules, got, want)
		}
	}
	_, bad := finish("drop", "ip saddr", "notrack")
	if got := strings.Join(bad, "\n"); len(bad) != 2 || !strings.Contains(got, "rule ip p c #2: ") || !strings.Contains(got, "rule ip p c #3: ") {
		t.Errorf("violations:\n%s\nwant one of rule 2 and one of rule 3", got)
	}
}
