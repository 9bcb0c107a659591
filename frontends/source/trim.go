package source

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// leavingTaint is what the cluster autoscaler puts on a node that it takes away.
const leavingTaint = "ToBeDeletedByClusterAutoscaler"

// trim drops what the model has no use for: most of an object's bytes, which a
// streamed list would hold until its end. It has the form of a
// cache.TransformFunc, and trims twice as well as once.
func trim(obj any) (any, error) {
	o, ok := obj.(metav1.Object)
	if !ok {
		return obj, nil
	}
	annotations := o.GetAnnotations()
	o.SetManagedFields(nil)
	o.SetAnnotations(nil)
	o.SetOwnerReferences(nil)
	o.SetFinalizers(nil)
	o.SetGenerateName("")
	switch o := obj.(type) {
	case *corev1.Service:
		o.Labels = keep(o.Labels, proxyNameLabel)
		o.Spec.Selector = nil
		o.Status.Conditions = nil
	case *discoveryv1.EndpointSlice:
		trimSlice(o, annotations)
	case *corev1.Node:
		o.Labels = keep(o.Labels, corev1.LabelTopologyZone)
		o.Spec = corev1.NodeSpec{PodCIDR: o.Spec.PodCIDR, PodCIDRs: o.Spec.PodCIDRs, Taints: slices.DeleteFunc(o.Spec.Taints, func(t corev1.Taint) bool {
			return t.Key != leavingTaint
		})}
		o.Status = corev1.NodeStatus{Addresses: o.Status.Addresses}
	case *networkingv1.ServiceCIDR:
		o.Labels = nil
		o.Status = networkingv1.ServiceCIDRStatus{}
	}
	return obj, nil
}

// trimSlice keeps of a slice how to reach its endpoints, and when they last
// changed. Of several addresses only the first is one to reach it at (rule 68).
func trimSlice(o *discoveryv1.EndpointSlice, annotations map[string]string) {
	o.Labels = keep(o.Labels, discoveryv1.LabelServiceName, corev1.IsHeadlessService)
	o.Annotations = keep(annotations, corev1.EndpointsLastChangeTriggerTime)
	for i := range o.Endpoints {
		e := &o.Endpoints[i]
		e.TargetRef, e.Hostname, e.DeprecatedTopology, e.Zone = nil, nil, nil, nil
		if len(e.Addresses) > 1 {
			e.Addresses = e.Addresses[:1:1]
		}
	}
}

// keep returns only these labels.
func keep(labels map[string]string, names ...string) map[string]string {
	var out map[string]string
	for _, n := range names {
		if v, ok := labels[n]; ok {
			if out == nil {
				out = make(map[string]string, len(names))
			}
			out[n] = v
		}
	}
	return out
}
