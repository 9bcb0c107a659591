package objects

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// keptMeta is what stays of fullMeta.
func keptMeta(labels ...string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "default", Name: "a", DeletionTimestamp: &metav1.Time{}}
	for _, l := range labels {
		metav1.SetMetaDataLabel(&m, l, fullMeta().Labels[l])
	}
	return m
}

func checkTrim[O any](t *testing.T, trim func(O) O, o, want O) {
	t.Helper()
	got := trim(o)
	if any(got) != any(o) {
		t.Error("trim made another object")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what stays (-want +got):\n%s", diff)
	}
}

// TestTrimSlice keeps how to reach endpoints, who they are for and when they
// changed. Of several addresses the first is the one that counts.
//
// Behaviour: 68.
func TestTrimSlice(t *testing.T) {
	text, yes := "h", true
	hints := &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "z"}}}
	full := &discoveryv1.EndpointSlice{ObjectMeta: fullMeta(), Endpoints: []discoveryv1.Endpoint{{
		Addresses: []string{"10.1.0.1", "10.1.0.2"}, Conditions: discoveryv1.EndpointConditions{Ready: &yes},
		Hostname: &text, Zone: &text, NodeName: &text, TargetRef: &corev1.ObjectReference{Name: "pod"},
		DeprecatedTopology: map[string]string{"a": "b"}, Hints: hints,
	}}}
	want := &discoveryv1.EndpointSlice{ObjectMeta: keptMeta(discoveryv1.LabelServiceName, corev1.IsHeadlessService), Endpoints: []discoveryv1.Endpoint{{
		Addresses: []string{"10.1.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: &yes}, NodeName: &text, Hints: hints,
	}}}
	want.Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: "2026-01-02T03:04:05Z"}
	checkTrim(t, podsOf("").trimSlice, full, want)
}

// TestTrimOthers keeps what the model reads of Services, Nodes and ServiceCIDRs.
func TestTrimOthers(t *testing.T) {
	spec := corev1.ServiceSpec{ClusterIP: "10.96.0.1", LoadBalancerSourceRanges: []string{"192.0.2.0/24"}}
	service := &corev1.Service{ObjectMeta: keptMeta(proxyNameLabel), Spec: spec}
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.9"}}
	full := service.DeepCopy()
	full.ObjectMeta, full.Spec.Selector = fullMeta(), map[string]string{"a": "b"}
	full.Status.Conditions = []metav1.Condition{{Message: "m"}}
	checkTrim(t, trimService, full, service)

	node := &corev1.Node{ObjectMeta: keptMeta(corev1.LabelTopologyZone)}
	node.Spec = corev1.NodeSpec{PodCIDR: "10.1.0.0/24", PodCIDRs: []string{"10.1.0.0/24"}, Taints: []corev1.Taint{{Key: model.DeletionTaint}}}
	node.Status.Addresses = []corev1.NodeAddress{{Address: "192.0.2.1"}}
	all := node.DeepCopy()
	all.ObjectMeta, all.Spec.ProviderID = fullMeta(), "p"
	all.Spec.Taints = []corev1.Taint{{Key: "other"}, {Key: model.DeletionTaint}}
	all.Status.Images, all.Status.Conditions = []corev1.ContainerImage{{SizeBytes: 1}}, []corev1.NodeCondition{{Message: "m"}}
	checkTrim(t, trimNode, all, node)

	cidr := &networkingv1.ServiceCIDR{ObjectMeta: keptMeta(), Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.96.0.0/16"}}}
	ranges := cidr.DeepCopy()
	ranges.ObjectMeta, ranges.Status.Conditions = fullMeta(), []metav1.Condition{{Message: "m"}}
	checkTrim(t, trimServiceCIDR, ranges, cidr)
}
