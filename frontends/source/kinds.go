package source

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Server-side filters, as kube-proxy's: Services that another proxy implements,
// and headless ones with their slices, never reach the node (rule 104).
const (
	proxyNameLabel  = "service.kubernetes.io/service-proxy-name"
	serviceSelector = "!" + proxyNameLabel
	serviceFields   = "spec.clusterIP!=" + corev1.ClusterIPNone
	sliceSelector   = "!" + corev1.IsHeadlessService
)

// kind is a kind of objects: how to ask for them, and what they become.
type kind struct {
	resource string
	// object is an empty one.
	object runtime.Object
	asks   *cache.ListWatch
	set    func(obj any) (Event, bool)
	gone   func(name types.NamespacedName) Event
	// optional kinds are not in every cluster: without them everything else
	// goes on.
	optional bool
}

// kinds are those that are followed.
func (k *Kube) kinds() []*kind {
	core, discovery, networking := k.client.CoreV1(), k.client.DiscoveryV1(), k.client.NetworkingV1()
	services, slices, nodes, cidrs := core.Services(""), discovery.EndpointSlices(""), core.Nodes(), networking.ServiceCIDRs()
	return []*kind{
		{
			resource: "services", object: &corev1.Service{},
			asks: asks(services.List, services.Watch, metav1.ListOptions{LabelSelector: serviceSelector, FieldSelector: serviceFields}),
			set:  func(o any) (Event, bool) { s, ok := o.(*corev1.Service); return ServiceSet{s}, ok },
			gone: func(n types.NamespacedName) Event { return ServiceGone{n} },
		},
		{
			resource: "endpointslices", object: &discoveryv1.EndpointSlice{},
			asks: asks(slices.List, slices.Watch, metav1.ListOptions{LabelSelector: sliceSelector}),
			set:  func(o any) (Event, bool) { s, ok := o.(*discoveryv1.EndpointSlice); return SliceSet{s}, ok },
			gone: func(n types.NamespacedName) Event { return SliceGone{n} },
		},
		{
			resource: "nodes", object: &corev1.Node{},
			asks: asks(nodes.List, nodes.Watch, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, k.node).String()}),
			set:  func(o any) (Event, bool) { n, ok := o.(*corev1.Node); return NodeSet{n}, ok },
			gone: func(n types.NamespacedName) Event { return NodeGone{n.Name} },
		},
		{
			resource: "servicecidrs", object: &networkingv1.ServiceCIDR{}, optional: true,
			asks: asks(cidrs.List, cidrs.Watch, metav1.ListOptions{}),
			set:  func(o any) (Event, bool) { c, ok := o.(*networkingv1.ServiceCIDR); return ServiceCIDRSet{c}, ok },
			gone: func(n types.NamespacedName) Event { return ServiceCIDRGone{n.Name} },
		},
	}
}

// asks joins a typed client's requests with what is selected on the server.
func asks[L runtime.Object](
	list func(context.Context, metav1.ListOptions) (L, error),
	follow func(context.Context, metav1.ListOptions) (watch.Interface, error),
	selected metav1.ListOptions,
) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector, o.FieldSelector = selected.LabelSelector, selected.FieldSelector
			return list(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector, o.FieldSelector = selected.LabelSelector, selected.FieldSelector
			return follow(ctx, o)
		},
	}
}
