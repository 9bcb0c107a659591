package objects

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"

	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/frontends/policy/model"
	services "github.com/weft-proxy/weft/frontends/services/model"
	serviceobjects "github.com/weft-proxy/weft/frontends/services/objects"
	"github.com/weft-proxy/weft/frontends/source"
	"github.com/weft-proxy/weft/frontends/testing/apitest"
)

// follower is a user of a source that keeps a model.
type follower struct {
	mu     sync.Mutex
	model  *model.Model
	events map[string]int // by resource
	synced bool
}

func follow(t *testing.T, s source.Source) *follower {
	t.Helper()
	f := &follower{model: model.New(model.Config{NodeName: "n1"}), events: make(map[string]int)}
	err := s.Subscribe(source.Subscription{User: "policy", Kinds: Kinds("n1", f.model), Deliver: func(events []source.Event) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, e := range events {
			e.Apply()
			f.events[e.Resource()]++
		}
		f.model.Refresh()
	}, Synced: func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.synced = true
	}})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// await waits until the pods of the node have a form such as "web:[] []".
func (f *follower) await(t *testing.T, want ...string) {
	t.Helper()
	f.until(t, fmt.Sprint(want), func() bool {
		var got []string
		for _, p := range f.model.Snapshot().Pods {
			var names [model.NumDirections][]string
			for d := range p.Policies {
				for _, id := range p.Policies[d] {
					names[d] = append(names[d], id.Name)
				}
			}
			got = append(got, fmt.Sprintf("%s:%v %v", p.Name.Name, names[model.Ingress], names[model.Egress]))
		}
		return slices.Equal(got, want)
	})
}

func run(t *testing.T, s source.Source) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
}

func kubeOf(t *testing.T, api *apitest.Server) *source.Kube {
	t.Helper()
	k, err := source.NewKube(source.KubeConfig{Server: api.URL(), QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func podOf(name, ip string, edit ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: "n1"},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}},
	}
	for _, f := range edit {
		f(p)
	}
	return p
}

func policyOf(name string) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
}

func clusterPolicyOf(name string) *v1alpha2.ClusterNetworkPolicy {
	all := &metav1.LabelSelector{}
	return &v1alpha2.ClusterNetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha2.ClusterNetworkPolicySpec{Tier: v1alpha2.AdminTier, Subject: v1alpha2.ClusterNetworkPolicySubject{Namespaces: all}, Egress: []v1alpha2.ClusterNetworkPolicyEgressRule{{
			Action: v1alpha2.ClusterNetworkPolicyRuleActionDeny, To: []v1alpha2.ClusterNetworkPolicyEgressPeer{{Namespaces: all}},
		}}},
	}
}

// TestAPI follows an API server: pods come and go as the field selector has it.
//
// Policy behaviour: 9-11.
func TestAPI(t *testing.T) {
	api := apitest.New(t)
	api.Set(policyOf("deny"), podOf("a", "10.0.0.1"), podOf("b", "10.0.0.2"),
		podOf("host", "192.0.2.1", func(p *corev1.Pod) { p.Spec.HostNetwork = true }),
		podOf("done", "10.0.0.3", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		podOf("new", "", func(p *corev1.Pod) { p.Status.PodIPs = nil }))
	k := kubeOf(t, api)
	f := follow(t, k)
	run(t, k)
	f.await(t, "a:[deny] []", "b:[deny] []")
	f.until(t, "the events of two pods", func() bool { return f.events["pods"] == 2 })
	now := metav1.Now()
	api.Set(podOf("a", "10.0.0.1", func(p *corev1.Pod) { p.DeletionTimestamp = &now }), podOf("b", "10.0.0.2", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
		podOf("new", "10.0.0.4"))
	f.await(t, "a:[deny] []", "new:[deny] []")
	api.Delete(policyOf("deny"), podOf("a", ""))
	f.await(t, "new:[] []")
}

// TestEachKind sets and deletes an object of each kind.
func TestEachKind(t *testing.T) {
	api := apitest.New(t)
	api.Install(NewScheme())
	k := kubeOf(t, api)
	f := follow(t, k)
	objects := []apitest.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, podOf("a", "10.0.0.1"), policyOf("p"), clusterPolicyOf("c"),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}},
		&networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.96.0.0/16"}}},
	}
	events := func(n int) func() bool {
		return func() bool {
			return maps.Equal(f.events, map[string]int{"namespaces": n, "pods": n, "networkpolicies": n, ClusterPolicies: n, "nodes": n, "servicecidrs": n})
		}
	}
	api.Set(objects...)
	run(t, k)
	f.until(t, "all objects", events(1))
	api.Delete(objects...)
	f.until(t, "the end of all objects", events(2))
	if s := f.model.Stats(); s.Namespaces+s.Pods+s.Policies > 0 {
		t.Errorf("left: %+v", s)
	}
}

// until waits for a condition, which is called with the lock held.
func (f *follower) until(t *testing.T, name string, ok func() bool) {
	t.Helper()
	aggregatortest.Eventually(t, name, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return ok()
	})
}

// TestCustomResource installs ClusterNetworkPolicy, and removes it.
func TestCustomResource(t *testing.T) {
	api := apitest.New(t)
	api.Install(NewScheme())
	api.Set(podOf("a", "10.0.0.1"), clusterPolicyOf("admin"))
	k := kubeOf(t, api)
	f := follow(t, k)
	run(t, k)
	f.await(t, "a:[] [admin]")
	for _, q := range api.Requests("clusternetworkpolicies") {
		if got := q.Header.Get("Accept"); got != "application/json" && got != "application/json;stream=watch" {
			t.Errorf("%s asks for %q", q.Verb, got)
		}
	}
	// The informer of a resource that exists no more is told so when its watch ends.
	api.Fault(func(q apitest.Request) apitest.Fault {
		if q.Resource == "clusternetworkpolicies" {
			return apitest.Fault{Status: http.StatusNotFound}
		}
		return apitest.Fault{}
	})
	api.Cut()
	f.await(t, "a:[] []")
}

// TestSharedWatches has both frontends in one process: each resource has one watch.
func TestSharedWatches(t *testing.T) {
	api := apitest.New(t)
	api.Install(NewScheme())
	api.Set(podOf("a", "10.0.0.1"))
	k := kubeOf(t, api)
	synced := make(chan struct{})
	if err := k.Subscribe(source.Subscription{
		User: "services", Kinds: serviceobjects.Kinds("n1", services.New(services.Config{NodeName: "n1"}), false), Deliver: func([]source.Event) {},
		Synced: func() { close(synced) },
	}); err != nil {
		t.Fatal(err)
	}
	f := follow(t, k)
	run(t, k)
	f.until(t, "the first lists", func() bool { return f.synced })
	<-synced
	for _, resource := range []string{"services", "endpointslices", "nodes", "servicecidrs", "pods", "namespaces", "networkpolicies"} {
		n := 0
		for _, q := range api.Requests(resource) {
			if q.Verb == "stream" {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d lists of %s, want 1", n, resource)
		}
	}
}
