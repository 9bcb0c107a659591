package services

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/weft-proxy/weft/frontends/source"
)

// leavingTaint is set by the cluster autoscaler before it deletes a node.
const leavingTaint = "ToBeDeletedByClusterAutoscaler"

// eligibility is whether load balancers may send new traffic to this node. It is
// judged by the events themselves, as the model is refreshed only between updates,
// and one can take long; it belongs to the goroutine that delivers them.
type eligibility struct {
	node string
	// synced is true once everything is known: while the frontend starts up a
	// node without an object is no reason.
	synced bool
	stays  bool
}

// take notes an event, and reports whether it was about this.
func (e *eligibility) take(event source.Event) bool {
	switch ev := event.(type) {
	case source.NodeSet:
		if ev.Node.Name != e.node {
			return false
		}
		e.stays = ev.Node.DeletionTimestamp == nil &&
			!slices.ContainsFunc(ev.Node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == leavingTaint })
	case source.NodeGone:
		if ev.Name != e.node {
			return false
		}
		e.stays = false
	case source.Synced:
		e.synced = true
	default:
		return false
	}
	return true
}
