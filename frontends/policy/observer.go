package policy

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/publish"
)

const (
	warning              = "Warning"
	reasonRejected       = "PolicyRejected"
	reasonTooLarge       = "PolicyTooLarge"
	clusterPolicyVersion = "policy.networking.k8s.io/v1alpha2"
)

// observer tells metrics, readers and users about the rules in force.
type observer struct{ *Frontend }

// Sent implements publish.Observer.
func (o *observer) Sent(s publish.Sent) {
	o.metrics.Sent(&s)
	switch {
	case s.Err == nil:
		o.content.Committed()
		o.flows.notify()
	case s.Rejected():
		o.content.Rejected()
	}
}

// Committed implements publish.Observer.
func (o *observer) Committed([]change) {
	status := o.publisher.Status()
	o.state.committed(status.Revision, status.Acknowledged, o.content.WaitsPod)
	o.local.OutcomesChanged()
}

// Refused implements publish.Observer.
func (o *observer) Refused(ids []model.PolicyID) {
	o.local.OutcomesChanged()
	o.status.SetRejected(o.refusedClusterPolicies())
	for _, id := range ids {
		reason, why := reasonRejected, "its rules are rejected"
		outcome := o.publisher.Outcome(id)
		switch outcome.State {
		case publish.Refused:
		case publish.LeftOut:
			reason, why = reasonTooLarge, "it cannot be rendered"
			o.cfg.Logger.Warn("policy cannot be rendered", "kind", id.Kind(), "namespace", id.Namespace, "name", id.Name, "reason", outcome.Reason)
		default:
			continue
		}
		o.cfg.Events.Object(reference(id), warning, reason, why+": on node "+o.cfg.NodeName+" "+leftOut(id)+": "+outcome.Reason.Error())
	}
}

func (f *Frontend) refusedClusterPolicies() map[string]string {
	out := make(map[string]string)
	for _, id := range f.publisher.Refused() {
		if outcome := f.publisher.Outcome(id); id.Tier != model.TierNetworkPolicy && outcome.Reason != nil {
			out[id.Name] = leftOut(id) + ": " + outcome.Reason.Error()
		}
	}
	return out
}

func leftOut(id model.PolicyID) string {
	if id.Tier == model.TierNetworkPolicy {
		return "it accepts nothing, and the pods that it selects stay isolated"
	}
	return "what reaches it is dropped for the pods that it selects"
}

// Answered implements publish.Observer.
func (o *observer) Answered(since, committed time.Time) {
	o.state.answered()
	if !committed.IsZero() {
		o.metrics.Latency.Observe(committed.Sub(since).Seconds())
	}
}

func reference(id model.PolicyID) corev1.ObjectReference {
	ref := corev1.ObjectReference{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: id.Kind(), Namespace: id.Namespace, Name: id.Name}
	if id.Tier != model.TierNetworkPolicy {
		ref.APIVersion = clusterPolicyVersion
	}
	return ref
}

type notices struct{ events Events }

// notify is called under the lock of the model.
func (n *notices) notify(notice model.Notice) {
	if !notice.Reporter {
		return
	}
	ref := corev1.ObjectReference{Kind: notice.Kind, Namespace: notice.Name.Namespace, Name: notice.Name.Name, UID: notice.UID}
	switch notice.Kind {
	case "Pod":
		ref.APIVersion = corev1.SchemeGroupVersion.String()
	case "NetworkPolicy":
		ref.APIVersion = networkingv1.SchemeGroupVersion.String()
	default:
		ref.APIVersion = clusterPolicyVersion
	}
	n.events.Object(ref, warning, notice.Reason, notice.Message)
}
