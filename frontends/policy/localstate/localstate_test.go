package localstate

import (
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/publish"
)

// fakeSource is a state of a test.
type fakeSource State

func (f *fakeSource) State() State { return State(*f) }

// example returns a state with a pod, three policies and a set.
func example() *fakeSource {
	db := model.PolicyID{Tier: model.TierNetworkPolicy, Namespace: "shop", Name: "db"}
	base := model.PolicyID{Tier: model.TierBaseline, Name: "base"}
	pod := &model.Pod{UID: "1", Name: types.NamespacedName{Namespace: "shop", Name: "db-1"}, Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")}}
	pod.Policies[model.Ingress] = []model.PolicyID{db, base}
	block := model.Range{First: netip.MustParseAddr("10.0.0.0"), Last: netip.MustParseAddr("10.0.0.255")}
	one := model.Range{First: netip.MustParseAddr("10.1.0.0"), Last: netip.MustParseAddr("10.1.0.0")}
	p := &model.Policy{ID: db}
	p.Rules[model.Ingress] = []model.Rule{
		{Name: "ingress[0]", Pods: []model.SetID{"s"}, Ports: []model.PortRange{{Protocol: model.TCP, First: 80, Last: 90}}},
		{Name: "ingress[1]", Blocks: []model.Range{block, one}, NamedPorts: []model.SetID{"s"}},
	}
	q := &model.Policy{ID: base, Priority: 7}
	q.Rules[model.Egress] = []model.Rule{{Name: "egress[0]", Action: model.Deny, Any: true, AllPorts: true}}
	admin := &model.Policy{ID: model.PolicyID{Tier: model.TierAdmin, Name: "first"}}
	return &fakeSource{
		Node: model.Node{Name: "node-1", PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}}, Pods: []PodState{{Pod: pod, Outcome: publish.Outcome{State: publish.InForce, Revision: 9}}},
		Policies: []PolicyState{
			{PolicyState: model.PolicyState{Policy: admin}},
			{PolicyState: model.PolicyState{Policy: p, Problems: []string{"ingress[2]"}}, Outcome: publish.Outcome{State: publish.Refused, Reason: errors.New("no")}},
			{PolicyState: model.PolicyState{Policy: q}},
		},
		Sets: []model.SetState{{Set: model.Set{ID: "s", Comment: "shop: app=api"}}}, Stats: model.Stats{Pods: 9},
	}
}

// TestTables has no rows before all objects are known, and then each table.
func TestTables(t *testing.T) {
	tables := New(example(), 7)
	for _, table := range tables.Tables() {
		if _, err := table.Rows(nil); err == nil || !strings.Contains(err.Error(), "not all policies are known yet") {
			t.Errorf("table %s before everything is known: %v", table.Name, err)
		}
	}
	tables.Changed(&model.Changes{})
	want := map[string]string{
		TablePods: `{"namespace":"shop","name":"db-1","uid":"1","addresses":["10.0.0.1"],"ingressPolicies":["shop/db","base"],"egressPolicies":[],"isolated":["ingress"],"state":"in force","revision":9}`,
		TablePolicies: `{"name":"first","tier":"Admin","priority":0,"pods":[],"directions":[],"state":"wanted"}
{"namespace":"shop","name":"db","tier":"NetworkPolicy","pods":["shop/db-1"],"directions":["ingress"],"state":"refused","reason":"no","problems":["ingress[2]"],"ingress":[{"name":"ingress[0]","action":"accept","pods":["shop: app=api"],"ports":["tcp 80-90"]},{"name":"ingress[1]","action":"accept","addresses":["10.0.0.0-10.0.0.255","10.1.0.0"],"ports":["shop: app=api"]}]}
{"name":"base","tier":"Baseline","priority":7,"pods":["shop/db-1"],"directions":["ingress"],"state":"wanted","egress":[{"name":"egress[0]","action":"deny","anyAddress":true,"allPorts":true}]}`,
		TableNode: `{"name":"node-1","addresses":null,"podCIDRs":["10.0.0.0/24"],"dropLog":7,"pods":9,"namespaces":0,"policies":0}`,
	}
	for _, table := range tables.Tables() {
		rows, err := table.Rows(nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for row := range rows {
			text, err := json.Marshal(row)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(text))
		}
		if text := strings.Join(got, "\n"); text != want[table.Name] {
			t.Errorf("table %s is\n%s\nwant\n%s", table.Name, text, want[table.Name])
		}
	}
}
