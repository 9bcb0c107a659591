package daemon

import (
	"path/filepath"
	"testing"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/frontends/policy"
	"github.com/weft-proxy/weft/frontends/services"
)

// TestRestarted: only rules of the own frontends make a process a restarted one.
func TestRestarted(t *testing.T) {
	a := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}}})
	own := []string{services.Publisher}
	is := func(want bool) {
		t.Helper()
		if have := restarted(t.Context(), a.Socket, own); have != want {
			t.Errorf("restarted: %t", have)
		}
	}
	is(false)
	rules := &weftv1.Fragment{Name: "a", Tables: []*weftv1.Table{{Family: "inet", Name: "a", Chains: []*weftv1.Chain{{Name: "c", Rules: []*weftv1.Rule{{Text: "accept"}}}}}}}
	apply := func(publisher string) {
		t.Helper()
		rules.Tables[0].Name = publisher
		if _, err := a.Dial(t, publisher).Apply(t.Context(), rules); err != nil {
			t.Fatal(err)
		}
	}
	apply("team-a")
	apply(policy.Publisher)
	is(false)
	apply(services.Publisher)
	is(true)
	if restarted(t.Context(), filepath.Join(t.TempDir(), "none"), own) {
		t.Error("without an aggregator")
	}
}
