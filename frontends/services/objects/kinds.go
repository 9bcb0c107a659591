package objects

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/source"
)

// kube-proxy's selectors exclude Services of other proxies and headless Services (rule 104).
const (
	proxyNameLabel  = "service.kubernetes.io/service-proxy-name"
	clusterIPField  = "spec.clusterIP"
	serviceSelector = "!" + proxyNameLabel
	serviceFields   = clusterIPField + "!=" + corev1.ClusterIPNone
	sliceSelector   = "!" + corev1.IsHeadlessService
)

// Kinds returns the kinds for a node's frontend. Their events change m. targets keeps the pods of the node's
// endpoints.
func Kinds(node string, m *model.Model, targets bool) []source.AnyKind {
	of := podsOf("")
	if targets {
		of = podsOf(node)
	}
	return []source.AnyKind{
		source.Kind[*corev1.Service, *corev1.Service]{
			Resource: corev1.SchemeGroupVersion.WithResource("services"), Object: &corev1.Service{}, Namespaced: true,
			LabelSelector: serviceSelector, FieldSelector: serviceFields,
			Fields:  func(s *corev1.Service) fields.Set { return fields.Set{clusterIPField: s.Spec.ClusterIP} },
			Decode:  trimService,
			Set:     func(_ types.NamespacedName, s *corev1.Service) { m.SetService(s) },
			Delete:  m.DeleteService,
			Default: completeService,
		},
		source.Kind[*discoveryv1.EndpointSlice, *discoveryv1.EndpointSlice]{
			Resource: discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), Object: &discoveryv1.EndpointSlice{}, Namespaced: true,
			LabelSelector: sliceSelector,
			Decode:        of.trimSlice, Unmarshal: of.unmarshalSlice,
			Set:     func(_ types.NamespacedName, s *discoveryv1.EndpointSlice) { m.SetSlice(s) },
			Delete:  m.DeleteSlice,
			Default: completeSlice,
			Owner:   serviceOf,
		},
		source.Kind[*corev1.Node, *corev1.Node]{
			Resource: corev1.SchemeGroupVersion.WithResource("nodes"), Object: &corev1.Node{},
			FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, node).String(),
			Decode:        trimNode,
			Set:           func(_ types.NamespacedName, n *corev1.Node) { m.SetNode(n) },
			Delete:        func(n types.NamespacedName) { m.DeleteNode(n.Name) },
		},
		source.Kind[*networkingv1.ServiceCIDR, *networkingv1.ServiceCIDR]{
			Resource: networkingv1.SchemeGroupVersion.WithResource("servicecidrs"), Object: &networkingv1.ServiceCIDR{}, Presence: source.Optional,
			Decode:  trimServiceCIDR,
			Set:     func(_ types.NamespacedName, c *networkingv1.ServiceCIDR) { m.SetServiceCIDR(c) },
			Delete:  func(n types.NamespacedName) { m.DeleteServiceCIDR(n.Name) },
			Default: completeServiceCIDR,
		},
	}
}

func completeService(s *corev1.Service) (missing string) {
	headless := s.Spec.ClusterIP == corev1.ClusterIPNone || len(s.Spec.ClusterIPs) > 0 && s.Spec.ClusterIPs[0] == corev1.ClusterIPNone
	if len(s.Spec.Ports) == 0 && !headless && s.Spec.Type != corev1.ServiceTypeExternalName {
		return "spec.ports"
	}
	for i := range s.Spec.Ports {
		if s.Spec.Ports[i].Port == 0 {
			return "spec.ports[].port"
		}
	}
	return ""
}

// completeSlice names unnamed ports like the API server.
func completeSlice(s *discoveryv1.EndpointSlice) (missing string) {
	if s.AddressType == "" {
		return "addressType"
	}
	for i := range s.Ports {
		if s.Ports[i].Name == nil {
			s.Ports[i].Name = new(string)
		}
	}
	for i := range s.Endpoints {
		if len(s.Endpoints[i].Addresses) == 0 {
			return "endpoints[].addresses"
		}
	}
	return ""
}

func completeServiceCIDR(s *networkingv1.ServiceCIDR) (missing string) {
	if len(s.Spec.CIDRs) == 0 {
		return "spec.cidrs"
	}
	return ""
}

func serviceOf(s *discoveryv1.EndpointSlice) source.Owner {
	name := s.Labels[discoveryv1.LabelServiceName]
	if name == "" {
		return source.Owner{Missing: "no label " + discoveryv1.LabelServiceName}
	}
	return source.Owner{GroupKind: schema.GroupKind{Kind: "Service"}, Name: types.NamespacedName{Namespace: s.Namespace, Name: name}}
}
