package services

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/frontends/source"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestPriorityOfAnotherVersion starts where a predecessor left base chains with other
// priorities and rules, and a chain that this version does not know.
// Behaviour: 133.
func TestPriorityOfAnotherVersion(t *testing.T) {
	ns := nfttest.New(t)
	s := newStack(t, ns)
	s.aggregator(t)
	dir, src := manifests(t, s)
	f, stop := s.frontend(t, src)
	await(t, "the first commit", func() bool { return f.Status().Published })
	stop()
	want := ns.ListRuleset(t)

	c, err := client.Dial(t.Context(), client.Config{Socket: s.socket, Publisher: Publisher})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := c.Get(t.Context(), "", render.Fragment)
	if err != nil {
		t.Fatal(err)
	}
	old := proto.CloneOf(got.GetFragment())
	changed := 0
	for _, table := range old.GetTables() {
		for _, chain := range table.GetChains() {
			if chain.GetHook() == "prerouting" || chain.GetHook() == "forward" {
				chain.Priority, changed = "-77", changed+1
			}
		}
	}
	if changed == 0 {
		t.Fatal("no base chain to change")
	}
	if _, err := c.Apply(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if before := ns.ListRuleset(t); !strings.Contains(before, "priority -77") {
		t.Fatalf("the other version's rules are not there:\n%s", before)
	}

	if src, err = source.NewManifests(dir, s.log); err != nil {
		t.Fatal(err)
	}
	f, _ = s.frontend(t, src)
	await(t, "the first commit of this version", func() bool { return f.Status().Published })
	// A chain that was made anew is listed last.
	sorted := func(list string) []string { return slices.Sorted(strings.Lines(list)) }
	if diff := cmp.Diff(sorted(want), sorted(ns.ListRuleset(t))); diff != "" {
		t.Errorf("the ruleset is not what it was:\n%s", diff)
	}
}
