package policy

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/frontends/policy/render"
	"github.com/weft-proxy/weft/frontends/source"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
	"github.com/weft-proxy/weft/nft"
)

// unlisting is a source like an API server that does not list ClusterNetworkPolicies at first.
type unlisting struct {
	*source.Manifests
	mu     sync.Mutex
	unread func([]string)
}

// Subscribe implements source.Source.
func (u *unlisting) Subscribe(s source.Subscription) error {
	synced := s.Synced
	s.Synced = func() {
		s.Unread([]string{"clusternetworkpolicies.policy.networking.k8s.io (forbidden)"})
		synced()
	}
	u.mu.Lock()
	u.unread = s.Unread
	u.mu.Unlock()
	return u.Manifests.Subscribe(s)
}

// list has the API server list them.
func (u *unlisting) list() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.unread(nil)
}

// startUnlisting runs a frontend whose source does not list ClusterNetworkPolicies at first.
func startUnlisting(t *testing.T, agg *publishtest.Aggregator, dir string) (*lab, *unlisting) {
	t.Helper()
	manifests, err := source.NewManifests(dir, nil)
	must(t, err)
	src, l := &unlisting{Manifests: manifests}, &lab{dir: dir, agg: agg}
	l.Frontend, _ = runFrontend(t, dir, Config{Source: src, Socket: agg.Socket})
	return l, src
}

// says reports whether an error has a text; an empty text is that of no error.
func says(err error, text string) bool {
	return (err == nil) == (text == "") && (err == nil || strings.Contains(err.Error(), text))
}

// TestUnlistedClusterPoliciesAtRestart keeps the denials of the process before while the API server does
// not list ClusterNetworkPolicies. If that process had none, nothing waits for them.
func TestUnlistedClusterPoliciesAtRestart(t *testing.T) {
	const unlisted = "the API server does not list clusternetworkpolicies"
	for name, policy := range map[string]string{"of all tiers": guardPolicy, "of NetworkPolicies": shop} {
		t.Run(name, func(t *testing.T) {
			kernel, dir := &aggregatortest.Kernel{}, t.TempDir()
			agg := &publishtest.Aggregator{Socket: aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: kernel}}).Socket}
			isolated := func() bool {
				return len(kernel.Elements(nft.TableID{Family: nft.FamilyIP, Name: render.Table}, "ingress")) > 0
			}
			l, stop := startOn(t, agg, dir)
			l.write(t, "pod.yaml", dbPod)
			l.write(t, "policy.yaml", policy)
			await(t, "isolation", isolated)
			stop()

			l.write(t, "policy.yaml", "")
			l, src := startUnlisting(t, agg, dir)
			if policy == shop {
				await(t, "the end of the isolation", func() bool { return l.Ready() == nil && !isolated() })
				if err := l.Degraded(); !says(err, unlisted) {
					t.Errorf("degraded: %v", err)
				}
			} else {
				await(t, "the reason", func() bool { return says(l.Ready(), unlisted) })
				time.Sleep(2 * startInterval) //nolint:forbidigo // nothing must happen
				if !isolated() || l.publisher.Status().Published {
					t.Error("the denial of a policy that is not listed ended at a restart")
				}
			}
			src.list()
			await(t, "the end of the denial", func() bool { return l.Ready() == nil && l.Degraded() == nil && !isolated() })
		})
	}
}

// TestStrangeName starts with a node name that no Node and no pod has: what is isolated stays so.
func TestStrangeName(t *testing.T) {
	const strange = `no Node and no pod has the name of this node, "node-a.example"`
	rename := func(_ *lab, cfg *Config) { cfg.NodeName = "node-a.example" }
	agg, dir := publishtest.New(t), t.TempDir()
	l, stop := startOn(t, agg, dir)
	l.write(t, "pod.yaml", dbPod)
	l.write(t, "policy.yaml", shop)
	await(t, "isolation", func() bool { return l.has("ingress", "10.244.1.5") })
	stop()

	l, stop = startOn(t, agg, dir, rename)
	await(t, "the reason", func() bool { return says(l.Ready(), strange) })
	time.Sleep(2 * startInterval) //nolint:forbidigo // nothing must happen
	if !l.has("ingress", "10.244.1.5") || l.publisher.Status().Published {
		t.Error("the isolation ended with another name of the node")
	}
	stop()

	l, _ = startOn(t, publishtest.New(t), dir, rename)
	await(t, "the first commit", func() bool { return l.Ready() == nil })
	if err := l.Degraded(); !says(err, strange) {
		t.Errorf("degraded at a first start: %v", err)
	}
	l.write(t, "node.yaml", "{apiVersion: v1, kind: Node, metadata: {name: node-a.example}}")
	await(t, "the Node", func() bool { return l.Degraded() == nil })
}

// TestStartDenyNeedsPodCIDRs is not ready while --policy-start=deny cannot be enforced.
func TestStartDenyNeedsPodCIDRs(t *testing.T) {
	dir := t.TempDir()
	l, _ := startOn(t, publishtest.New(t), dir, func(_ *lab, cfg *Config) { cfg.Start = render.StartDeny })
	l.write(t, "pod.yaml", dbPod)
	node := func(cidrs string) {
		l.write(t, "node.yaml", "{apiVersion: v1, kind: Node, metadata: {name: node-a}, spec: {podCIDRs: ["+cidrs+"]}}")
	}
	node("")
	await(t, "the reason", func() bool { return says(l.Ready(), "does not isolate new pods: the Node has no podCIDRs") })
	node("10.244.9.0/24")
	await(t, "the pod outside", func() bool {
		return says(l.Ready(), "the pod shop/db has the address 10.244.1.5, which is not in the Node's podCIDRs [10.244.9.0/24]")
	})
	node("10.244.1.0/24")
	await(t, "readiness", func() bool { return l.Ready() == nil })
	if err := errors.Join(l.Healthy(), l.Degraded()); err != nil {
		t.Error(err)
	}
}
