package policy

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/publish/publishtest"
	"github.com/weft-proxy/weft/frontends/source"
)

// TestNotices reports each kind of object with its version, unless other nodes report it.
func TestNotices(t *testing.T) {
	events := &recorder{}
	n := &notices{events: events}
	for _, kind := range []string{"Pod", "NetworkPolicy", "ClusterNetworkPolicy"} {
		for _, reporter := range []bool{true, false} {
			n.notify(model.Notice{Kind: kind, Name: types.NamespacedName{Name: "x"}, Reason: "Why", Reporter: reporter})
		}
	}
	const want = "v1 Pod/x Why, networking.k8s.io/v1 NetworkPolicy/x Why, policy.networking.k8s.io/v1alpha2 ClusterNetworkPolicy/x Why"
	if got := events.text(); got != want {
		t.Errorf("events %s, want %s", got, want)
	}
}

// TestRejectedClusterPolicies has the ClusterNetworkPolicies whose condition is false on this
// node: those that cannot be rendered, and those that the aggregator rejects.
func TestRejectedClusterPolicies(t *testing.T) {
	src, err := source.NewManifests(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := New(Config{Source: src, NodeName: "n", Socket: publishtest.New(t).Socket, StatusClient: fake.NewClientset()})
	if err != nil {
		t.Fatal(err)
	}
	admin, baseline := model.PolicyID{Tier: model.TierAdmin, Name: "a"}, model.PolicyID{Tier: model.TierBaseline, Name: "b"}
	f.refused(map[model.PolicyID]string{admin: "too large", {Tier: model.TierNetworkPolicy, Namespace: "shop", Name: "db"}: "too large"})
	f.state.reject(baseline, "syntax error")
	const effect = "what reaches it is dropped for the pods that it selects: "
	if got, want := fmt.Sprint(f.state.rejectedClusterPolicies()), "map[a:"+effect+"too large b:"+effect+"syntax error]"; got != want {
		t.Errorf("rejected %s, want %s", got, want)
	}
	f.refused(nil)
	(&observer{f}).Quarantined(nil)
	if got := f.state.rejectedClusterPolicies(); len(got) > 0 {
		t.Errorf("rejected %v, want none", got)
	}
}

// TestOrderOfDecision sorts policies as they decide: by tier, priority and name.
func TestOrderOfDecision(t *testing.T) {
	policy := func(tier model.Tier, priority int32, name string) *model.Policy {
		return &model.Policy{ID: model.PolicyID{Tier: tier, Name: name}, Priority: priority}
	}
	order := []*model.Policy{
		policy(model.TierAdmin, 1, "b"), policy(model.TierAdmin, 2, "a"), policy(model.TierAdmin, 2, "c"),
		policy(model.TierNetworkPolicy, 0, "a"), policy(model.TierBaseline, 0, "a"),
	}
	for i, a := range order {
		for j, b := range order {
			if got := compareDecision(a, b); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%v and %v compare as %d", a, b, got)
			}
		}
	}
}
