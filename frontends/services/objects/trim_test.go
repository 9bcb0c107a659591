package objects

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weft-proxy/weft/frontends/services/model"
)

func fullMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "default", Name: "a", GenerateName: "a-", DeletionTimestamp: &metav1.Time{},
		Annotations: map[string]string{"big": string(bytes.Repeat([]byte("x"), 1000)), corev1.EndpointsLastChangeTriggerTime: "2026-01-02T03:04:05Z"},
		Labels: map[string]string{"app": "a", proxyNameLabel: "p", discoveryv1.LabelServiceName: "a", corev1.IsHeadlessService: "",
			corev1.LabelTopologyZone: "z"},
		ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "m"}},
		OwnerReferences: []metav1.OwnerReference{{Name: "o"}}, Finalizers: []string{"f"},
	}
}

func checkMeta[O metav1.Object](t *testing.T, trim func(O) O, o O, labels string) {
	t.Helper()
	if got := trim(o); any(got) != any(o) {
		t.Fatal("trim made another object")
	}
	if o.GetManagedFields() != nil || o.GetOwnerReferences() != nil || o.GetFinalizers() != nil || o.GetGenerateName() != "" {
		t.Errorf("%T keeps %+v", o, o)
	}
	if o.GetName() != "a" || o.GetNamespace() != "default" || o.GetDeletionTimestamp() == nil {
		t.Errorf("%T lost %+v", o, o)
	}
	var got []string
	for _, l := range []string{"app", proxyNameLabel, discoveryv1.LabelServiceName, corev1.IsHeadlessService, corev1.LabelTopologyZone} {
		if _, ok := o.GetLabels()[l]; ok {
			got = append(got, l)
		}
	}
	if strings.Join(got, " ") != labels {
		t.Errorf("%T has labels %v, want %s", o, got, labels)
	}
}

// TestTrimSlice keeps how to reach endpoints, who they are for and when they
// changed. Of several addresses the first is the one that counts.
//
// Behaviour: 68.
func TestTrimSlice(t *testing.T) {
	text, yes := "h", true
	s := &discoveryv1.EndpointSlice{ObjectMeta: fullMeta(), Endpoints: []discoveryv1.Endpoint{{
		Addresses: []string{"10.1.0.1", "10.1.0.2"}, Conditions: discoveryv1.EndpointConditions{Ready: &yes},
		Hostname: &text, Zone: &text, NodeName: &text, TargetRef: &corev1.ObjectReference{Name: "pod"},
		DeprecatedTopology: map[string]string{"a": "b"},
		Hints:              &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "z"}}},
	}}}
	checkMeta(t, trimSlice, s, discoveryv1.LabelServiceName+" "+corev1.IsHeadlessService)
	if len(s.Annotations) != 1 || s.Annotations[corev1.EndpointsLastChangeTriggerTime] == "" {
		t.Errorf("annotations %v", s.Annotations)
	}
	e := s.Endpoints[0]
	if len(e.Addresses) != 1 || e.Addresses[0] != "10.1.0.1" || e.Conditions.Ready == nil || *e.NodeName != "h" || e.Hints.ForZones[0].Name != "z" {
		t.Errorf("endpoint lost %+v", e)
	}
	if e.Hostname != nil || e.Zone != nil || e.TargetRef != nil || e.DeprecatedTopology != nil {
		t.Errorf("endpoint keeps %+v", e)
	}
}

func TestTrimService(t *testing.T) {
	s := &corev1.Service{ObjectMeta: fullMeta(), Spec: corev1.ServiceSpec{Selector: map[string]string{"a": "b"}, ClusterIP: "10.96.0.1",
		LoadBalancerSourceRanges: []string{"192.0.2.0/24"}}}
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.9"}}
	s.Status.Conditions = []metav1.Condition{{Message: "m"}}
	checkMeta(t, trimService, s, proxyNameLabel)
	if s.Annotations != nil || s.Spec.Selector != nil || s.Status.Conditions != nil {
		t.Errorf("service keeps %+v", s)
	}
	if s.Spec.ClusterIP == "" || s.Spec.LoadBalancerSourceRanges == nil || s.Status.LoadBalancer.Ingress == nil {
		t.Errorf("service lost %+v", s)
	}
}

func TestTrimNode(t *testing.T) {
	n := &corev1.Node{ObjectMeta: fullMeta(), Spec: corev1.NodeSpec{PodCIDR: "10.1.0.0/24", PodCIDRs: []string{"10.1.0.0/24"}, ProviderID: "p",
		Taints: []corev1.Taint{{Key: "other"}, {Key: model.DeletionTaint}}}}
	n.Status = corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Address: "192.0.2.1"}}, Images: []corev1.ContainerImage{{SizeBytes: 1}},
		Conditions: []corev1.NodeCondition{{Message: "m"}}}
	checkMeta(t, trimNode, n, corev1.LabelTopologyZone)
	if n.Annotations != nil || n.Spec.ProviderID != "" || n.Status.Images != nil || n.Status.Conditions != nil {
		t.Errorf("node keeps %+v", n)
	}
	if len(n.Status.Addresses) != 1 || len(n.Spec.PodCIDRs) != 1 || n.Spec.PodCIDR == "" || len(n.Spec.Taints) != 1 || n.Spec.Taints[0].Key != model.DeletionTaint {
		t.Errorf("node lost %+v", n)
	}
}

func TestTrimServiceCIDR(t *testing.T) {
	c := &networkingv1.ServiceCIDR{ObjectMeta: fullMeta(), Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.96.0.0/16"}}}
	c.Status.Conditions = []metav1.Condition{{Message: "m"}}
	checkMeta(t, trimServiceCIDR, c, "")
	if c.Annotations != nil || c.Status.Conditions != nil || len(c.Spec.CIDRs) != 1 {
		t.Errorf("range %+v", c)
	}
}
