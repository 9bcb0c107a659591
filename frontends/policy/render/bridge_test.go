package render

import (
	"maps"
	"net/netip"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/policy/model"
)

// TestBindings: the bindings of a snapshot are those of its pods.
func TestBindings(t *testing.T) {
	f := newFixture(t)
	four, six := netip.MustParseAddr("10.244.0.5"), netip.MustParseAddr("fd00::5")
	id := model.PolicyID{Tier: model.TierNetworkPolicy, Namespace: "shop", Name: "deny"}
	pod := &model.Pod{UID: "u", Name: types.NamespacedName{Namespace: "shop", Name: "db"}, Addresses: []netip.Addr{four, six}, Link: model.Link{Name: "veth5", Bridged: true}}
	pod.Policies[model.Ingress] = []model.PolicyID{id}
	f.r.Load(model.Changes{Policies: []model.PolicyChange{{New: &model.Policy{ID: id}}}, Pods: []model.PodChange{{New: pod}}})
	if got, want := Bindings(f.r.Snapshot()), map[netip.Addr]string{four: "veth5", six: "veth5"}; !maps.Equal(got, want) {
		t.Errorf("bindings are %v, want %v", got, want)
	}
}
