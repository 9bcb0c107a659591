package judge

import (
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/policy/model"
)

// Flow is a connection of any IP protocol; Port is 0 for a protocol without ports.
type Flow struct {
	Source, Destination netip.Addr
	Protocol            model.Protocol
	Port                uint16
}

// String returns "10.0.0.1 > 10.0.0.2 tcp/80".
func (f Flow) String() string {
	return fmt.Sprintf("%s > %s %s/%d", f.Source, f.Destination, f.Protocol, f.Port)
}

// Verdict allows a flow if both ends do.
type Verdict struct {
	Allowed bool
	// Egress is the source's decision, Ingress the destination's.
	Ends [model.NumDirections]Decision
}

func (v Verdict) String() string {
	word := "denied"
	if v.Allowed {
		word = "allowed"
	}
	return fmt.Sprintf("%s: egress %s; ingress %s", word, v.Ends[model.Egress], v.Ends[model.Ingress])
}

// Decision is the decision of an end.
type Decision struct {
	Allowed bool
	Reason  Reason
	// Pod is the local pod at this end, or empty.
	Pod types.NamespacedName
	// Policy and Rule decided, if the reason is ByRule; Policy alone if LeftOut.
	Policy model.PolicyID
	Rule   string
}

func (d Decision) String() string {
	word := "denied"
	if d.Allowed {
		word = "allowed"
	}
	out := word + ": " + d.Reason.String()
	if d.Reason == ByRule || d.Reason == LeftOut {
		out += fmt.Sprintf(" %s %s/%s %s", d.Policy.Kind(), d.Policy.Namespace, d.Policy.Name, d.Rule)
	}
	return out
}

// Reason is why an end allows or denies a flow.
type Reason uint8

const (
	// NoPod allows: the end is not a local pod.
	NoPod Reason = iota
	// FromNode allows: this node is the source, or both ends.
	FromNode
	// Self allows: a pod reaches itself.
	Self
	// NoPolicy allows: no rule matches, and the pod is not isolated.
	NoPolicy
	// ByRule allows or denies by the rule of a policy.
	ByRule
	// Isolated denies: no NetworkPolicy accepts.
	Isolated
	// LeftOut denies: a ClusterNetworkPolicy could not be rendered.
	LeftOut
	// Unknown denies: no pod is known in this pod range.
	Unknown
)

var reasons = [...]string{
	NoPod: "not a pod of this node", FromNode: "the flow comes from this node", Self: "a pod reaches itself", NoPolicy: "not isolated",
	ByRule: "by a rule of", Isolated: "isolated, and no policy accepts", LeftOut: "left out is", Unknown: "no pod is known at this address",
}

func (r Reason) String() string { return reasons[r] }
