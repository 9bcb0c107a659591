package objects

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"

	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/source"
)

// Pods with an address of their own that have not ended (rules 9-11). The field of the host's
// network needs Kubernetes 1.28. Terminating pods stay.
const (
	hostNetworkField = "spec.hostNetwork"
	phaseField       = "status.phase"
	podIPField       = "status.podIP"

	podFields = podIPField + "!=," + hostNetworkField + "=false," +
		phaseField + "!=" + string(corev1.PodSucceeded) + "," + phaseField + "!=" + string(corev1.PodFailed)
)

// ClusterPolicies is the resource of ClusterNetworkPolicies.
const ClusterPolicies = "clusternetworkpolicies"

// Kinds returns the kinds for a node, with events that change m. The selection of Nodes and
// ServiceCIDRs equals the Service frontend's, so that both share a watch.
func Kinds(node string, m *model.Model) []source.AnyKind {
	return []source.AnyKind{
		source.Kind[*networkingv1.NetworkPolicy, *model.PolicyObject]{
			Resource: networkingv1.SchemeGroupVersion.WithResource("networkpolicies"), Object: &networkingv1.NetworkPolicy{}, Namespaced: true,
			Decode: model.ParsePolicy, Validate: model.ValidatePolicy,
			Set:    func(_ types.NamespacedName, p *model.PolicyObject) { m.SetPolicy(p) },
			Delete: m.DeletePolicy,
		},
		source.Kind[*corev1.Pod, *model.PodObject]{
			Resource: corev1.SchemeGroupVersion.WithResource("pods"), Object: &corev1.Pod{}, Namespaced: true,
			FieldSelector: podFields, Fields: fieldsOfPod,
			Decode: model.ParsePod, Unmarshal: model.UnmarshalPod,
			Set:    func(_ types.NamespacedName, p *model.PodObject) { m.SetPod(p) },
			Delete: m.DeletePod,
		},
		source.Kind[*corev1.Namespace, *model.NamespaceObject]{
			Resource: corev1.SchemeGroupVersion.WithResource("namespaces"), Object: &corev1.Namespace{},
			Decode: model.ParseNamespace,
			Set:    func(_ types.NamespacedName, n *model.NamespaceObject) { m.SetNamespace(n) },
			Delete: func(n types.NamespacedName) { m.DeleteNamespace(n.Name) },
		},
		source.Kind[*corev1.Node, *model.NodeObject]{
			Resource: corev1.SchemeGroupVersion.WithResource("nodes"), Object: &corev1.Node{},
			FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, node).String(),
			Decode:        model.ParseNode,
			Set:           func(_ types.NamespacedName, n *model.NodeObject) { m.SetNode(n) },
			Delete:        func(types.NamespacedName) {}, // the node keeps its addresses
		},
		source.Kind[*networkingv1.ServiceCIDR, *model.ServiceCIDRObject]{
			Resource: networkingv1.SchemeGroupVersion.WithResource("servicecidrs"), Object: &networkingv1.ServiceCIDR{}, Presence: source.Optional,
			Decode: model.ParseServiceCIDR,
			Set:    func(_ types.NamespacedName, c *model.ServiceCIDRObject) { m.SetServiceCIDR(c) },
			Delete: func(n types.NamespacedName) { m.DeleteServiceCIDR(n.Name) },
		},
		source.Kind[*v1alpha2.ClusterNetworkPolicy, *model.PolicyObject]{
			Resource: schema.GroupVersion(v1alpha2.GroupVersion).WithResource(ClusterPolicies), Object: &v1alpha2.ClusterNetworkPolicy{}, Scheme: NewScheme(),
			Presence: source.Custom,
			Decode:   model.ParseClusterPolicy,
			Set:      func(_ types.NamespacedName, p *model.PolicyObject) { m.SetClusterPolicy(p) },
			Delete:   func(n types.NamespacedName) { m.DeleteClusterPolicy(n.Name) },
		},
	}
}

// NewScheme returns a scheme for a client of the custom resources.
func NewScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	// Errors of the API server have this version.
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	utilruntime.Must(v1alpha2.Install(s))
	return s
}

func fieldsOfPod(p *corev1.Pod) fields.Set {
	address := p.Status.PodIP
	if address == "" && len(p.Status.PodIPs) > 0 {
		// A manifest may have only the list.
		address = p.Status.PodIPs[0].IP
	}
	return fields.Set{
		hostNetworkField: strconv.FormatBool(p.Spec.HostNetwork), phaseField: string(p.Status.Phase), podIPField: address,
	}
}
