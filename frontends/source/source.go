package source

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Source is where the objects come from.
type Source interface {
	// Run delivers batches of events until ctx ends; it returns nil then.
	// The first batches bring what there is, the last of those ends with
	// Synced; from then on each batch is a change. Objects in events are
	// never changed afterwards, by either side.
	Run(ctx context.Context, deliver func([]Event)) error
}

// Event is one change: ServiceSet, ServiceGone, SliceSet, SliceGone, NodeSet,
// NodeGone, ServiceCIDRSet, ServiceCIDRGone or Synced.
type Event interface{ event() }

// ServiceSet says that a Service exists in this form.
type ServiceSet struct{ Service *corev1.Service }

// ServiceGone says that a Service does not exist any more.
type ServiceGone struct{ Name types.NamespacedName }

// SliceSet says that an EndpointSlice exists in this form.
type SliceSet struct{ Slice *discoveryv1.EndpointSlice }

// SliceGone says that an EndpointSlice does not exist any more.
type SliceGone struct{ Name types.NamespacedName }

// NodeSet says that a Node exists in this form.
type NodeSet struct{ Node *corev1.Node }

// NodeGone says that a Node does not exist any more.
type NodeGone struct{ Name string }

// ServiceCIDRSet says that a ServiceCIDR exists in this form.
type ServiceCIDRSet struct{ ServiceCIDR *networkingv1.ServiceCIDR }

// ServiceCIDRGone says that a ServiceCIDR does not exist any more.
type ServiceCIDRGone struct{ Name string }

// Synced says that everything that existed at the start has been delivered.
// It comes once.
type Synced struct{}

func (ServiceSet) event()      {}
func (ServiceGone) event()     {}
func (SliceSet) event()        {}
func (SliceGone) event()       {}
func (NodeSet) event()         {}
func (NodeGone) event()        {}
func (ServiceCIDRSet) event()  {}
func (ServiceCIDRGone) event() {}
func (Synced) event()          {}
