package policytest

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"
)

// Cluster is the content of the API server. A change replaces objects and never modifies them.
type Cluster struct {
	Pods            map[types.NamespacedName]*corev1.Pod
	Namespaces      map[string]*corev1.Namespace
	Nodes           map[string]*corev1.Node
	Policies        map[types.NamespacedName]*networkingv1.NetworkPolicy
	ClusterPolicies map[string]*v1alpha2.ClusterNetworkPolicy
}

// NewCluster returns an empty cluster.
func NewCluster() *Cluster {
	return &Cluster{
		Pods:            map[types.NamespacedName]*corev1.Pod{},
		Namespaces:      map[string]*corev1.Namespace{},
		Nodes:           map[string]*corev1.Node{},
		Policies:        map[types.NamespacedName]*networkingv1.NetworkPolicy{},
		ClusterPolicies: map[string]*v1alpha2.ClusterNetworkPolicy{},
	}
}

// Addresses returns the pod's addresses in the pod network, or nil for a pod in its host's network or after
// its end.
func Addresses(pod *corev1.Pod) []netip.Addr {
	if pod.Spec.HostNetwork || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	var all []netip.Addr
	for _, ip := range append([]corev1.PodIP{{IP: pod.Status.PodIP}}, pod.Status.PodIPs...) {
		if addr, err := netip.ParseAddr(ip.IP); err == nil && !slices.Contains(all, addr) {
			all = append(all, addr)
		}
	}
	return all
}
