package modeltest

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"

	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/testing/policytest"
)

// Apply stores an object in a model, or removes it.
func Apply(m *model.Model, c policytest.Change) {
	o, gone := c.New, c.New == nil
	if gone {
		o = c.Old
	}
	name := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
	switch o := o.(type) {
	case *corev1.Pod:
		if gone {
			m.DeletePod(name)
		} else {
			m.SetPod(model.ParsePod(o))
		}
	case *corev1.Namespace:
		if gone {
			m.DeleteNamespace(name.Name)
		} else {
			m.SetNamespace(model.ParseNamespace(o))
		}
	case *corev1.Node:
		if !gone {
			m.SetNode(model.ParseNode(o))
		}
	case *networkingv1.NetworkPolicy:
		if gone {
			m.DeletePolicy(name)
		} else {
			m.SetPolicy(model.ParsePolicy(o))
		}
	case *v1alpha2.ClusterNetworkPolicy:
		if gone {
			m.DeleteClusterPolicy(name.Name)
		} else {
			m.SetClusterPolicy(model.ParseClusterPolicy(o))
		}
	case *networkingv1.ServiceCIDR:
		if gone {
			m.DeleteServiceCIDR(name.Name)
		} else {
			m.SetServiceCIDR(model.ParseServiceCIDR(o))
		}
	default:
		panic(fmt.Sprintf("%T", o))
	}
}
