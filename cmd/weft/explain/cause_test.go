package explain

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/policy/model"
	policy "github.com/weft-proxy/weft/frontends/policy/render"
	services "github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/nft/ruleset"
)

// TestCauses finds the cause of every rule of weft's own that drops or rejects, and the rules of every cause.
func TestCauses(t *testing.T) {
	files, err := filepath.Glob("../../../frontends/services/render/testdata/*.nft")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	used := map[string]int{}
	check := func(f, table, chain, rule, comment string) {
		if words := strings.Fields(rule); words[len(words)-1] != "drop" && !slices.Contains(words, "reject") {
			return
		}
		w := Way{Verdict: wordDrop, Steps: []Step{{Table: table, Chain: chain, Handle: 1, Rule: rule, Comment: comment, Owner: "a/b"}}}
		why, remedy := w.why(nil)
		if remedy == "" || strings.HasPrefix(why, "fragment ") {
			t.Errorf("%s: rule %q of chain %s: %s. %s.", f, rule, chain, why, remedy)
		}
		used[remedy]++
	}
	for _, table := range everyPolicyRule(t).GetTables() {
		for _, c := range table.GetChains() {
			for _, r := range c.GetRules() {
				check("policies", table.GetFamily()+" "+table.GetName(), c.GetName(), r.GetText(), r.GetComment())
			}
		}
	}
	for _, f := range append(files, "../../../nft/eval/testdata/stock/weft.nft") {
		text, err := os.ReadFile(f)
		must(t, err)
		tables, err := ruleset.Parse(f, string(text))
		must(t, err)
		for _, table := range tables {
			for _, c := range table.Chains {
				for _, r := range c.Rules {
					if table.Name == services.Table || table.Name == policy.Table {
						check(f, table.ID().String(), c.Name, r.Text, r.Comment)
					}
				}
			}
		}
	}
	for _, c := range causes {
		if used[c.remedy] == 0 {
			t.Errorf("no rule has the cause %q", c.why)
		}
	}
}

// everyPolicyRule returns the rules for pods with a policy, one with an interface of its own and one on a bridge.
func everyPolicyRule(t *testing.T) *weftv1.Fragment {
	t.Helper()
	r, err := policy.New(policy.Config{Families: [2]bool{true, true}, Start: policy.StartDeny})
	must(t, err)
	id := model.PolicyID{Tier: model.TierNetworkPolicy, Namespace: "shop", Name: "db"}
	pod := func(uid types.UID, link model.Link) model.PodChange {
		return model.PodChange{New: &model.Pod{
			UID: uid, Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")}, Link: link,
			Policies: [model.NumDirections][]model.PolicyID{{id}, {id}},
		}}
	}
	r.Load(model.Changes{
		Node:     &model.Node{PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}},
		Policies: []model.PolicyChange{{New: &model.Policy{ID: id}}},
		Pods:     []model.PodChange{pod("db-0", model.Link{Name: "veth0"}), pod("db-1", model.Link{Name: "port0", Bridged: true})},
	})
	return r.Snapshot()
}
