package policy

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/policy/model"
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
