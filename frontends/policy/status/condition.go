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

// Accepted is the condition's type: true unless the policy is invalid or a node rejects it.
const Accepted = "Accepted"

const (
	// ReasonAccepted is the reason of a true condition.
	ReasonAccepted = "Accepted"
	// ReasonInvalid means invalid or unknown parts.
	ReasonInvalid = "Invalid"
	// ReasonRejected means that the named node cannot enforce the policy.
	ReasonRejected = "RejectedOnNode"
)

// The API's limit is 32 times as long.
const maxMessage = 1024

type policy struct {
	uid        types.UID
	version    string
	generation int64
	problem    string            // empty if valid
	present    *metav1.Condition // nil if missing
	// When this node writes the condition; zero if it need not.
	due time.Time
}

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

// rejected is the reason of this node, or empty.
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

func onNode(node string) string { return "On node " + node + ": " }

// missing reports whether this node would replace the present condition by c.
//
// For one generation a condition changes only from true to false, so that disagreeing nodes do not
// replace each other's. It becomes true again if the rejecting node accepts the policy.
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

// The patch applies to this version of the policy only.
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
