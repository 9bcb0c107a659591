package aggregator_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/kernel"
)

// bounded are two publishers of which one has limits.
const bounded = `
publishers:
- name: cni
  match: {uid: 4242}
  allow: {tables: [{family: ip, name: demo}]}
- name: system
  match: {uid: 4243}
  system: true
  allow: {tables: [{family: ip, name: demo}]}
`

// ranged is a fragment whose set has n elements with concatenated ranges, and a rule that names it.
func ranged(name string, n int) *weftv1.Fragment {
	f := blocklist(name)
	f.Tables[0].Sets[0].Type, f.Tables[0].Sets[0].Flags = "ipv4_addr . inet_service", []string{"interval"}
	f.Tables[0].Chains[0].Rules[0].Text = "ip saddr . tcp dport @blocked drop"
	for i := range n {
		f.Tables[0].Sets[0].Elements = append(f.Tables[0].Sets[0].Elements, &weftv1.Element{Key: fmt.Sprintf("11.%d.%d.%d . 1001-4007", i>>16, i>>8&255, i&255)})
	}
	return f
}

// violations returns what is wrong with an update that was rejected.
func violations(err error) string {
	var r *client.RejectedError
	if !errors.As(err, &r) {
		return fmt.Sprint(err)
	}
	var text strings.Builder
	for _, v := range r.Violations {
		fmt.Fprintf(&text, "%s %s: %s\n", v.GetReason(), v.GetObject().Text(), v.GetMessage())
	}
	return text.String()
}

// TestLongTransactionIsRefused changes a set in force that has concatenated ranges. A publisher
// with limits may add what the kernel adds in time, and what it does not have yet in steps.
func TestLongTransactionIsRefused(t *testing.T) {
	k := &stepping{}
	d, _, _, _ := limited(t, k, bounded)
	ctx, c := aggregatortest.Context(t), d.Dial(t, "cni")
	apply := func(f *weftv1.Fragment, want string) {
		t.Helper()
		_, err := c.Apply(ctx, f)
		if got := violations(err); want == "" && err != nil || !strings.Contains(got, want) {
			t.Errorf("%.500s, want %q", got, want)
		}
	}
	apply(ranged("large", 8000), "")
	if n := k.most.Load(); n > 2000 || k.n.Load() < 5 {
		t.Errorf("%d transactions, of which the largest has %d elements", k.n.Load(), n)
	}
	commits := k.n.Load()
	apply(ranged("large", 16_000), "REASON_LIMIT set ip demo blocked: the kernel would need about ")
	apply(ranged("large", 100), "at most 100ms are allowed")
	if n := k.n.Load(); n != commits || len(k.Elements(demo, "blocked")) != 8000 {
		t.Errorf("%d transactions more, and %d elements", n-commits, len(k.Elements(demo, "blocked")))
	}
	apply(ranged("large", 8100), "")
	// The set is another fragment's too: one of both could not go without it.
	apply(ranged("another", 1), "to withdraw the fragment again would take the kernel about ")
	must(t, errorOf(c.Delete(ctx, "cni", "large")))
	if len(k.Elements(demo, "blocked")) > 0 {
		t.Error("the set is still there")
	}
	// Those of the system have no limits.
	c = d.Dial(t, "system")
	apply(ranged("large", 8000), "")
	apply(ranged("large", 16_000), "")
	same(t, "elements", len(k.Elements(demo, "blocked")), 16_000)
}

// TestManySets adds sets, each of which the kernel compares with all others of the table: those
// with names come in steps, and the rules with too many of their own are refused.
func TestManySets(t *testing.T) {
	k := &stepping{}
	d, _, _, _ := limited(t, k, bounded)
	ctx, c := aggregatortest.Context(t), d.Dial(t, "cni")
	f := blocklist("sets")
	for i := range 4000 {
		f.Tables[0].Sets = append(f.Tables[0].Sets, &weftv1.Set{Name: fmt.Sprintf("s%d", i), Type: "ipv4_addr"})
	}
	_, err := c.Apply(ctx, f)
	must(t, err)
	most := 0
	for _, ops := range k.Commits() {
		sets := 0
		for _, op := range ops {
			if _, ok := op.(kernel.AddSet); ok {
				sets++
			}
		}
		most = max(most, sets)
	}
	if most == 0 || most > 400 {
		t.Errorf("the largest of %d transactions adds %d sets", len(k.Commits()), most)
	}
	rules := func(n int) *weftv1.Fragment {
		f := blocklist("rules")
		f.Tables[0].Chains = []*weftv1.Chain{{Name: "c"}}
		for i := range n {
			f.Tables[0].Chains[0].Rules = append(f.Tables[0].Chains[0].Rules, &weftv1.Rule{Text: fmt.Sprintf("tcp dport { %d, %d } drop", i+1, i+2)})
		}
		return f
	}
	mustApply(t, c, rules(100))
	if _, err = c.Apply(ctx, rules(1000)); !strings.Contains(violations(err), "REASON_LIMIT chain ip demo c: the kernel would need about ") {
		t.Errorf("a thousand rules: %.300s", violations(err))
	}
	for _, name := range []string{"sets", "rules"} {
		must(t, errorOf(c.Delete(ctx, "cni", name)))
	}
	if !k.Empty() {
		t.Errorf("something is left: %.500s", k)
	}
}
