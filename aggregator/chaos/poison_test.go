package chaos

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// poison is what the compiler takes and the kernel does not, wherever it stands.
type poison struct {
	name string
	add  func(t *table)
}

// poisons are put into a publisher's own table, which is of family inet.
var poisons = []poison{
	{"nat in a filter chain", func(t *table) {
		t.chains["bad"] = &chain{base: [3]string{"filter", "forward", "filter"}, rules: []rule{{text: "ip daddr 10.203.0.1 dnat ip to 10.203.0.2"}}}
	}},
	{"masquerade before routing", func(t *table) {
		t.chains["bad"] = &chain{base: [3]string{"nat", "prerouting", "dstnat"}, rules: []rule{{text: "ip saddr 10.203.0.1 masquerade"}}}
	}},
	{"reject after routing", func(t *table) {
		t.chains["bad"] = &chain{base: [3]string{"filter", "postrouting", "filter"}, rules: []rule{{text: "ip saddr 10.203.0.1 reject"}}}
	}},
	{"loop of jumps", func(t *table) {
		t.chains["bad"] = &chain{base: [3]string{"filter", "forward", "filter"}, rules: []rule{{text: "jump bad1"}}}
		t.chains["bad1"] = &chain{rules: []rule{{text: "jump bad2"}}}
		t.chains["bad2"] = &chain{rules: []rule{{text: "jump bad1"}}}
	}},
	{"overlapping intervals", func(t *table) {
		s := declare(t, "badnets")
		s.elements["10.203.0.0/24"], s.elements["10.203.0.128/25"] = element{}, element{}
	}},
	{"full set", func(t *table) {
		s := declare(t, "badhosts")
		s.size = 2
		for i := range 5 {
			s.elements[fmt.Sprintf("10.203.0.%d", i)] = element{}
		}
	}},
}

// poisoned returns a content with a poison in it.
func poisoned(old *content, own string, p poison) *content {
	c := old.clone()
	p.add(c.table(own))
	return c
}

// TestPoisonsAreTheKernels proves that each poison gets through the compiler,
// as a snapshot and as a patch, and is refused by the kernel alone.
func TestPoisonsAreTheKernels(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	conn, err := kernel.Open(kernel.Config{NetNS: ns.FD()})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: conn, StateDir: t.TempDir()}})
	ctx := aggregatortest.Context(t)
	base := &content{tables: make(map[string]*table)}
	declare(base.table("inet own"), "hosts").elements["10.200.0.1"] = element{}
	s := d.Dial(t, "tester").Session(client.SessionConfig{Snapshot: base.fragment})
	defer s.Close()
	for _, p := range poisons {
		t.Run(p.name, func(t *testing.T) {
			bad := poisoned(base, "inet own", p)
			if _, err := s.Put(ctx, base.fragment("main")); err != nil {
				t.Fatal(err)
			}
			_, err := s.Patch(ctx, patch("main", base, bad))
			refused(t, "patch", err)
			_, err = s.Put(ctx, bad.fragment("main"))
			refused(t, "snapshot", err)
			got, err := listRuleset(ns)
			if err != nil {
				t.Fatal(err)
			}
			if d := difference(merge([]held{{"tester", "main", base}}), got); d != "" {
				t.Errorf("the kernel is not as before:\n%s", d)
			}
		})
	}
}

func refused(t *testing.T, what string, err error) {
	t.Helper()
	r := outcome(0, err)
	if !slices.Equal(r.Reasons, []string{weftv1.Violation_REASON_KERNEL.String()}) {
		t.Errorf("%s = %v, want the kernel's refusal", what, err)
	}
}
