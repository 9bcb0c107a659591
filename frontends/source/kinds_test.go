package source

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// recorder is a user that keeps one text of each object that exists.
type recorder struct {
	mu      sync.Mutex
	objects map[string]string
	synced  int
	batches int
	// gone counts the objects that were deleted.
	gone int
}

func newRecorder() *recorder {
	return &recorder{objects: make(map[string]string)}
}

// subscription has the kinds of most tests, as a frontend describes them.
func (r *recorder) subscription() Subscription {
	cidr := kindOf(r, networkingv1.SchemeGroupVersion, "servicecidrs", &networkingv1.ServiceCIDR{}, func(c *networkingv1.ServiceCIDR) string {
		return strings.Join(c.Spec.CIDRs, ",")
	})
	cidr.Presence = Optional
	cidr.Default = func(c *networkingv1.ServiceCIDR) string {
		if len(c.Spec.CIDRs) == 0 {
			return "spec.cidrs"
		}
		return ""
	}
	return r.subscribed(serviceKind(r), sliceKind(r), nodeKind(r), cidr)
}

// subscribed is a subscription of some kinds.
func (r *recorder) subscribed(kinds ...AnyKind) Subscription {
	return Subscription{User: "test", Kinds: kinds, Deliver: r.deliver, Synced: r.setSynced}
}

func kindOf[O Object](r *recorder, gv schema.GroupVersion, resource string, object O, text func(O) string) Kind[O, string] {
	var name string
	key := func(n types.NamespacedName) string { return name + " " + strings.TrimPrefix(n.String(), "/") }
	k := Kind[O, string]{
		Resource: gv.WithResource(resource), Object: object, Decode: text,
		Set:    func(n types.NamespacedName, v string) { r.objects[key(n)] = v },
		Delete: func(n types.NamespacedName) { delete(r.objects, key(n)); r.gone++ },
	}
	name = strings.TrimPrefix(fmt.Sprintf("%T", object), "*v1.")
	return k
}

func serviceKind(r *recorder) Kind[*corev1.Service, string] {
	k := kindOf(r, corev1.SchemeGroupVersion, "services", &corev1.Service{}, func(s *corev1.Service) string { return s.Spec.ClusterIP })
	k.Namespaced, k.LabelSelector, k.FieldSelector = true, "!other", "spec.clusterIP!="+corev1.ClusterIPNone
	k.Fields = func(s *corev1.Service) fields.Set { return fields.Set{"spec.clusterIP": s.Spec.ClusterIP} }
	k.Default = func(s *corev1.Service) string {
		if len(s.Spec.Ports) == 0 {
			return "spec.ports"
		}
		for i := range s.Spec.Ports {
			if s.Spec.Ports[i].Port == 0 {
				return "spec.ports[].port"
			}
		}
		return ""
	}
	return k
}

func sliceKind(r *recorder) Kind[*discoveryv1.EndpointSlice, string] {
	k := kindOf(r, discoveryv1.SchemeGroupVersion, "endpointslices", &discoveryv1.EndpointSlice{}, func(s *discoveryv1.EndpointSlice) string {
		var addrs []string
		for _, e := range s.Endpoints {
			addrs = append(addrs, e.Addresses...)
		}
		return strings.Join(addrs, ",")
	})
	k.Namespaced, k.LabelSelector = true, "!"+corev1.IsHeadlessService
	k.Default = func(s *discoveryv1.EndpointSlice) string {
		if s.AddressType == "" {
			return "addressType"
		}
		return ""
	}
	k.Owner = func(s *discoveryv1.EndpointSlice) Owner {
		name := s.Labels[discoveryv1.LabelServiceName]
		if name == "" {
			return Owner{Missing: "no label " + discoveryv1.LabelServiceName}
		}
		return Owner{GroupKind: schema.GroupKind{Kind: "Service"}, Name: types.NamespacedName{Namespace: s.Namespace, Name: name}}
	}
	return k
}

// nodeKind follows the Node n1 alone.
func nodeKind(r *recorder) Kind[*corev1.Node, string] {
	k := kindOf(r, corev1.SchemeGroupVersion, "nodes", &corev1.Node{}, func(n *corev1.Node) string { return fmt.Sprint(len(n.Status.Addresses)) })
	k.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, "n1").String()
	return k
}

func (r *recorder) deliver(events []Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batches++
	for _, e := range events {
		e.Apply()
	}
}

func (r *recorder) setSynced() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.synced++
}

// compiled returns the kinds of a recorder for the decoder of manifests.
func compiled(t testing.TB) map[schema.GroupVersionKind][]*kind {
	t.Helper()
	m, err := NewManifests("unused", nil)
	must(t, err)
	must(t, m.Subscribe(newRecorder().subscription()))
	return m.kinds
}
