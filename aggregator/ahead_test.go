package aggregator_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/kernel"
)

// dispatch is a fragment whose map leads from an address to a chain.
func dispatch(addr, chain string) *weftv1.Fragment {
	return &weftv1.Fragment{Name: "dispatch", Tables: []*weftv1.Table{{
		Family: "ip", Name: "demo",
		Maps: []*weftv1.Set{{Name: "to", Type: "ipv4_addr : verdict", Elements: []*weftv1.Element{{Key: addr, Value: "goto " + chain}}}},
		Chains: []*weftv1.Chain{
			{Name: chain, Rules: []*weftv1.Rule{{Text: "counter drop"}}},
			{Name: "input", Type: "filter", Hook: "input", Priority: "filter", Rules: []*weftv1.Rule{{Text: "ip saddr vmap @to"}}},
		},
	}}}
}

// TestChainsAhead commits a new chain before the element that leads to it, and removes it again
// if the element is refused.
func TestChainsAhead(t *testing.T) {
	k := &aggregatortest.Kernel{}
	refuse := false
	k.Refuse = func(op kernel.Op) (syscall.Errno, string) {
		if add, ok := op.(kernel.AddElements); ok && refuse && add.Elements[0].Key == "\x0a\x00\x00\x02" {
			return syscall.EINVAL, "no such place"
		}
		return 0, ""
	}
	cfg, _, reg := observed(aggregator.Config{Kernel: k})
	d := aggregatortest.Start(t, aggregatortest.Config{Config: cfg})
	c, ctx := d.Dial(t, "tester"), aggregatortest.Context(t)
	apply := func(f *weftv1.Fragment) error {
		_, err := c.Apply(ctx, f)
		return err
	}
	must(t, apply(dispatch("10.0.0.1", "first")))
	before := len(k.Commits())
	must(t, apply(dispatch("10.0.0.1", "second")))
	commits := k.Commits()[before:]
	if len(commits) != 2 {
		t.Fatalf("%d transactions, want 2", len(commits))
	}
	for _, op := range commits[0] {
		switch op.(type) {
		case kernel.AddChain, kernel.AddRule:
		default:
			t.Errorf("%T comes ahead", op)
		}
	}
	before = len(k.Commits())
	must(t, apply(dispatch("10.0.0.3", "second")))
	if n := len(k.Commits()) - before; n != 1 {
		t.Errorf("%d transactions without a new chain, want 1", n)
	}

	refuse = true
	read := metric(t, reg, "weft_aggregator_work_total", "dumps")
	for range 10 {
		rejection(t, apply(dispatch("10.0.0.2", "third")), weftv1.Violation_REASON_KERNEL)
		if strings.Contains(k.String(), "third") {
			t.Errorf("the chain of a refused update stays:\n%s", k.String())
		}
	}
	if n := metric(t, reg, "weft_aggregator_work_total", "dumps") - read; n != 0 {
		t.Errorf("10 refused updates had the kernel read %v times", n)
	}
	must(t, apply(dispatch("10.0.0.4", "second")))
	if text := k.String(); strings.Contains(text, "third") || !strings.Contains(text, "second") {
		t.Errorf("after a refused element:\n%s", text)
	}
}
