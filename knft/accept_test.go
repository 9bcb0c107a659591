package knft_test

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/knftables"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/access"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/knft"
)

// TestHonouringPublisher changes a chain in which the aggregator has put a rule of its own first, because the
// publisher honours accepts of another one.
func TestHonouringPublisher(t *testing.T) {
	file := filepath.Join(t.TempDir(), "weft.yaml")
	const text = `apiVersion: weft.dev/v1alpha1
kind: Configuration
publishers:
- {name: agent, match: {uid: 0}, accept: {publishers: [other], mark: 0x10}}
- {name: other, match: {uid: 2}}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	control, err := access.Open(access.Options{File: file})
	if err != nil {
		t.Fatal(err)
	}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}, Access: control}})
	nft := newAdapter(t, d.Dial(t, "agent"), knft.Config{Family: knftables.IPv4Family, Table: "agent"})
	must(t, nft, add(table(), base("in", knftables.FilterType, knftables.InputHook, knftables.FilterPriority)), add(noted("in", "drop", "one")))
	s := &scene{t: t, nft: nft}
	after := s.rule("in", "one")
	after.Rule = "accept"
	must(t, nft, add(after), remove(s.rule("in", "one")))
	rules, err := nft.ListRules(aggregatortest.Context(t), "in")
	if err != nil || len(rules) != 2 {
		t.Errorf("%d rules are listed, error %v, want the aggregator's and the one that was added", len(rules), err)
	}
}
