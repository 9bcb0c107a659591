package status

import (
	"encoding/json"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"

	"github.com/weft-proxy/weft/frontends/policy/model"
)

// Accepted is the type of the condition. It is true if all rules of the policy are enforced
// as they are written, by each node that has pods to which the policy applies.
const Accepted = "Accepted"

// The reasons of the condition.
const (
	// ReasonAccepted means that the policy is enforced.
	ReasonAccepted = "Accepted"
	// ReasonInvalid means that parts of the policy are not valid, or not known.
	ReasonInvalid = "Invalid"
	// ReasonRejected means that a node, which the message names, cannot enforce the policy.
	ReasonRejected = "RejectedOnNode"
)

// maxMessage is the length of the longest message. The API's limit is 32 times as long.
const maxMessage = 1024

// policy is what is kept of a ClusterNetworkPolicy.
type policy struct {
	uid        types.UID
	version    string
	generation int64
	// problem is what is not valid in the policy, empty if nothing is.
	problem string
	// present is the condition that the policy has, nil if it has none.
	present *metav1.Condition
	// due is when this node writes the condition, unless it is present then. It is zero if
	// the condition is present.
	due time.Time
}

// parse returns what is kept of a ClusterNetworkPolicy.
func parse(o *v1alpha2.ClusterNetworkPolicy) *policy {
	p := &policy{
		uid: types.UID(strings.Clone(string(o.UID))), version: strings.Clone(o.ResourceVersion), generation: o.Generation,
		problem: model.ParseClusterPolicy(o).Problem(),
	}
	for i := range o.Status.Conditions {
		if o.Status.Conditions[i].Type == Accepted {
			p.present = o.Status.Conditions[i].DeepCopy()
		}
	}
	return p
}

// condition returns the condition as this node sees it. rejected is why the policy is
// rejected on this node, empty if it is not.
func (p *policy) condition(node, rejected string) metav1.Condition {
	c := metav1.Condition{Type: Accepted, Status: metav1.ConditionTrue, Reason: ReasonAccepted, Message: "All rules are enforced.", ObservedGeneration: p.generation}
	switch {
	case p.problem != "":
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, ReasonInvalid, p.problem
	case rejected != "":
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, ReasonRejected, onNode(node)+rejected
	}
	if len(c.Message) > maxMessage {
		c.Message = strings.ToValidUTF8(c.Message[:maxMessage-3], "") + "..."
	}
	return c
}

// onNode begins the message of a node that rejects a policy.
func onNode(node string) string { return "On node " + node + ": " }

// missing reports whether this node would replace the present condition by c.
//
// For one generation of a policy a condition changes from true to false only, so that nodes
// that disagree, such as those of two versions of weft, do not replace each other's: it
// becomes true again if the policy changes, or if the node that rejected it accepts it.
func (p *policy) missing(c *metav1.Condition, node string) bool {
	switch {
	case p.present == nil || p.present.ObservedGeneration < c.ObservedGeneration:
		return true
	case p.present.ObservedGeneration > c.ObservedGeneration || p.present.Status == c.Status:
		return false
	case c.Status == metav1.ConditionFalse:
		return true
	default:
		return p.present.Reason == ReasonRejected && strings.HasPrefix(p.present.Message, onNode(node))
	}
}

// patch returns the body of the request that applies a condition to the policy of this
// version only.
func (p *policy) patch(name string, c metav1.Condition) ([]byte, error) {
	type metadata struct {
		Name            string    `json:"name"`
		UID             types.UID `json:"uid"`
		ResourceVersion string    `json:"resourceVersion"`
	}
	return json.Marshal(struct {
		metav1.TypeMeta
		Metadata metadata                            `json:"metadata"`
		Status   v1alpha2.ClusterNetworkPolicyStatus `json:"status"`
	}{
		metav1.TypeMeta{APIVersion: v1alpha2.GroupVersion.String(), Kind: "ClusterNetworkPolicy"},
		metadata{name, p.uid, p.version},
		v1alpha2.ClusterNetworkPolicyStatus{Conditions: []metav1.Condition{c}},
	})
}
