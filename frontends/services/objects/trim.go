package objects

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// Unused metadata is most of an object's bytes.
func trimMeta(o metav1.Object, labels, annotations []string) {
	o.SetManagedFields(nil)
	o.SetOwnerReferences(nil)
	o.SetFinalizers(nil)
	o.SetGenerateName("")
	o.SetLabels(keep(o.GetLabels(), labels))
	o.SetAnnotations(keep(o.GetAnnotations(), annotations))
}

func keep(all map[string]string, names []string) map[string]string {
	var out map[string]string
	for _, n := range names {
		if v, ok := all[n]; ok {
			if out == nil {
				out = make(map[string]string, len(names))
			}
			out[n] = v
		}
	}
	return out
}

func trimService(o *corev1.Service) *corev1.Service {
	trimMeta(o, []string{proxyNameLabel}, nil)
	o.Spec.Selector = nil
	o.Status.Conditions = nil
	return o
}

// podsOf is the node whose endpoints keep their pods, or "".
type podsOf string

func (p podsOf) has(e *discoveryv1.Endpoint) bool {
	return p != "" && e.NodeName != nil && *e.NodeName == string(p)
}

// Only the first address is used (rule 68).
func (p podsOf) trimSlice(o *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	trimMeta(o, sliceLabels, sliceAnnotations)
	for i := range o.Endpoints {
		e := &o.Endpoints[i]
		e.Hostname, e.DeprecatedTopology, e.Zone = nil, nil, nil
		if !p.has(e) {
			e.TargetRef = nil
		}
		if len(e.Addresses) > 1 {
			e.Addresses = e.Addresses[:1:1]
		}
	}
	return o
}

func trimNode(o *corev1.Node) *corev1.Node {
	trimMeta(o, []string{corev1.LabelTopologyZone}, nil)
	o.Spec = corev1.NodeSpec{PodCIDR: o.Spec.PodCIDR, PodCIDRs: o.Spec.PodCIDRs, Taints: slices.DeleteFunc(o.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key != model.DeletionTaint
	})}
	o.Status = corev1.NodeStatus{Addresses: o.Status.Addresses}
	return o
}

func trimServiceCIDR(o *networkingv1.ServiceCIDR) *networkingv1.ServiceCIDR {
	trimMeta(o, nil, nil)
	o.Status = networkingv1.ServiceCIDRStatus{}
	return o
}
