package explain

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	policy "github.com/weft-proxy/weft/frontends/policy/render"
	services "github.com/weft-proxy/weft/frontends/services/render"
)

// cause is for weft's own rules.
type cause struct {
	// text is a part of the rule, chain a prefix of its chain
	table, chain, text string
	// without full stops; {service} is the Service
	why, remedy string
	// the Service has no usable endpoints
	endpoints bool
}

// causes covers all rules that stop packets, except for policies, which have comments. The first
// match counts.
var causes = []cause{
	{
		table: services.Table, chain: "reject-chain", endpoints: true,
		why: "{service} has no endpoints", remedy: "Look at its selector and its pods",
	},
	{
		table: services.Table, chain: "drop-chain", endpoints: true,
		why:    "the traffic policy of {service} is Local, and this node has no endpoint of it that is ready",
		remedy: "Connect to a node that has one, start a pod on this node, or set the traffic policy to Cluster",
	},
	{
		table: services.Table, chain: "unserved", text: "@cluster-ips",
		why: "the Service of this ClusterIP has no such port", remedy: "Compare the port and the protocol with those of the Service: `weft get services`",
	},
	{
		table: services.Table, chain: "unserved", text: "@service-cidrs",
		why: "no Service has this ClusterIP", remedy: "Look the address up again: the Service was deleted or has another one",
	},
	{
		table: services.Table, chain: "sources-",
		why: "the source is not in loadBalancerSourceRanges of {service}", remedy: "Add its CIDR there",
	},
	{
		table: services.Table, chain: "reject-on-loopback",
		why:    "it goes to the NodePort of {service} on a loopback address, which serves TCP only, and only if nodePortAddresses has loopback addresses",
		remedy: "Use an address of this node",
	},
	{
		table: policy.Table, text: "ct state invalid",
		why:    "a policy selects a pod of it, and it belongs to no connection that conntrack knows (invalid or untracked)",
		remedy: "Look for rules with notrack, and for a way back through another node",
	},
	{
		table: policy.Table, chain: "middle",
		why:    "it begins a TCP connection in the middle, which conntrack does not know, and a policy selects a pod of it: by its ports it is not of the client",
		remedy: "Have the client speak, or connect again",
	},
	{
		table: policy.Table, text: "nd-redirect",
		why:    "a policy selects a pod of it, and it announces routes for a pod, or is neighbour discovery that a router has passed on",
		remedy: "Have a router announce them",
	},
	{
		table: policy.Table, text: "8021q",
		why: "a policy selects a pod at a port of this bridge, and its frame has a VLAN tag", remedy: "Send it without a tag",
	},
	{
		table: policy.Table, chain: "to-pod", text: "saddr",
		why: "a policy selects the pod that is to get it, and its source is an address of that pod", remedy: "Look for the program that forges the source",
	},
	{
		table: policy.Table, chain: "to-pod",
		why:    "a policy selects the pod at this port of the bridge, and the pod's status does not have the destination",
		remedy: "Send it to an address of the pod: `weft get pods`",
	},
	{
		table: policy.Table, text: "fib saddr",
		why:    "a policy selects the pod that sent it, and this node does not reach its source through the pod's interface",
		remedy: "Look for a route to the source: `ip route get`",
	},
	{
		table: policy.Table, chain: "from-pod",
		why:    "a policy selects the pod that sent it, and the pod's status does not have its source",
		remedy: "Have the pod send from an address of its own: `weft get pods`",
	},
	{
		table: policy.Table, chain: "forward", text: "@known-pods",
		why: "the policies of a pod of it are not known yet, and --policy-start is deny", remedy: "`weft get status` says what is missing",
	},
}

// The remedy may be empty.
func (w *Way) why(s *Service) (why, remedy string) {
	if w.Reason != "" || len(w.Steps) == 0 {
		return w.Reason, ""
	}
	step := &w.Steps[len(w.Steps)-1]
	_, table, _ := strings.Cut(step.Table, " ")
	i := slices.IndexFunc(causes, func(c cause) bool {
		return c.table == table && strings.HasPrefix(step.Chain, c.chain) && strings.Contains(step.Rule, c.text)
	})
	switch {
	case step.Foreign:
		return "another program does not let it pass", "Have that program accept it: an accept in weft's tables does not help"
	case i >= 0 && causes[i].endpoints && unused(s) != "":
		return unused(s), causes[i].remedy
	case i >= 0:
		name := "the Service"
		if s != nil {
			name = "Service " + s.Name
		}
		return strings.ReplaceAll(causes[i].why, "{service}", name), causes[i].remedy
	case table == policy.Table && step.Comment != "":
		return denied(step.Comment)
	case step.Owner != "":
		return fmt.Sprintf("fragment %s does not let it pass", step.Owner) + prefixed(": ", step.Comment), fmt.Sprintf("`weft get fragment %s` shows its rules", step.Owner)
	default:
		return "a rule does not let it pass" + prefixed(": ", step.Comment), ""
	}
}

var policyComment = regexp.MustCompile(`^(.*?) ((?:in|e)gress.*)$`)

// denied reads a policy rule's comment: "shop/db ingress" if no rule allows the packet, "admin/db
// ingress[0]" if one denies it.
func denied(comment string) (why, remedy string) {
	text, left := strings.CutSuffix(comment, " is left out")
	m := policyComment.FindStringSubmatch(text)
	if m == nil {
		return "policy " + comment + " denies it", ""
	}
	names, rule := m[1], m[2]
	switch {
	case left:
		return fmt.Sprintf("policy %s is left out, and so denies all %s of its pods", names, rule), "`weft get policies` says why"
	case strings.Contains(rule, "["):
		return fmt.Sprintf("rule %s of policy %s denies it", rule, names), "Change the rule, or accept the packet in a rule before it"
	default:
		return fmt.Sprintf("no rule of policy %s allows it (%s)", names, rule), "Add a rule, or compare the labels of the pods with those that its rules select"
	}
}

// unused returns why no endpoint is used, or empty.
func unused(s *Service) string {
	if s == nil {
		return ""
	}
	if len(s.Endpoints) == 0 {
		return fmt.Sprintf("Service %s has no endpoints", s.Name)
	}
	var reasons []string
	for _, e := range s.Endpoints {
		if e.Excluded == "" {
			return ""
		}
		if !slices.Contains(reasons, e.Excluded) {
			reasons = append(reasons, e.Excluded)
		}
	}
	return fmt.Sprintf("no endpoint of Service %s is used: %s", s.Name, strings.Join(reasons, "; "))
}
