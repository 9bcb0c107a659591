package source

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
)

// service fills in what the API server would, and returns the name of a field
// that it would not accept the Service without.
func (d *decoder) service(s *corev1.Service, o *object) (missing string) {
	if s.Namespace == "" {
		s.Namespace = corev1.NamespaceDefault
	}
	o.id = identity{kind: "Service", namespace: s.Namespace, name: s.Name}
	o.set, o.gone = ServiceSet{s}, ServiceGone{types.NamespacedName{Namespace: s.Namespace, Name: s.Name}}
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

// slice does the same for an EndpointSlice.
func (d *decoder) slice(s *discoveryv1.EndpointSlice, o *object) (missing string) {
	if s.Namespace == "" {
		s.Namespace = corev1.NamespaceDefault
	}
	o.id = identity{kind: "EndpointSlice", namespace: s.Namespace, name: s.Name}
	o.set, o.gone = SliceSet{s}, SliceGone{types.NamespacedName{Namespace: s.Namespace, Name: s.Name}}
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

// serviceCIDR does the same for a ServiceCIDR.
func (d *decoder) serviceCIDR(s *networkingv1.ServiceCIDR, o *object) (missing string) {
	o.id = identity{kind: "ServiceCIDR", name: s.Name}
	o.set, o.gone = ServiceCIDRSet{s}, ServiceCIDRGone{s.Name}
	if len(s.Spec.CIDRs) == 0 {
		return "spec.cidrs"
	}
	return ""
}
