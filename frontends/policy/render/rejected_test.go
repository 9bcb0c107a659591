package render

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/policy/model"
)

// TestRejectedIsForgotten: the chain of a policy that is left out after a rejection is in no snapshot,
// so that the rest is not rejected with it. One that was committed stays until Cleanup.
func TestRejectedIsForgotten(t *testing.T) {
	for _, rejected := range []bool{true, false} {
		r, err := New(Config{Families: [2]bool{true, false}})
		must(t, err)
		id := model.PolicyID{Tier: model.TierNetworkPolicy, Namespace: "shop", Name: "db"}
		p := &model.Policy{ID: id}
		p.Rules[model.Ingress] = []model.Rule{{Name: "ingress[0]", Any: true, AllPorts: true}}
		pod := &model.Pod{UID: "db", Name: types.NamespacedName{Namespace: "shop", Name: "db"}, Addresses: []netip.Addr{netip.MustParseAddr("10.244.1.5")}}
		pod.Policies[model.Ingress] = []model.PolicyID{id}
		r.Update(model.Changes{Pods: []model.PodChange{{New: pod}}, Policies: []model.PolicyChange{{New: p}}})
		if rejected {
			r.Rejected()
		} else {
			r.Committed()
		}
		r.Update(model.Changes{Policies: []model.PolicyChange{{Old: p}}})
		if text := fmt.Sprint(r.Snapshot()); strings.Contains(text, "shop/db ingress[0]") == rejected || !strings.Contains(text, "10.244.1.5") {
			t.Errorf("rejected %t: %s", rejected, text)
		}
	}
}
