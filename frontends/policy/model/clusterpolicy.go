package model

import (
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"

	"github.com/weft-proxy/weft/frontends/source/network"
)

// ParseClusterPolicy returns the parsed form of a ClusterNetworkPolicy.
//
// A rule with an invalid peer or protocol is ignored if it accepts, and otherwise denies everything
// (rule 63). With more than maxSets sets, all rules are invalid. With an unknown tier or an invalid
// subject, no pod is selected.
func ParseClusterPolicy(o *v1alpha2.ClusterNetworkPolicy) *PolicyObject {
	out := &PolicyObject{
		id: PolicyID{Name: strings.Clone(o.Name)}, priority: o.Spec.Priority,
		uid: types.UID(strings.Clone(string(o.UID))), namespaces: all(), pods: all(),
	}
	tier, tierOK := tiersOf[o.Spec.Tier]
	if out.id.Tier = tier; !tierOK {
		out.bad.add("spec.tier", fmt.Errorf("unknown tier %q: want Admin or Baseline", o.Spec.Tier))
	}
	out.parsed = out.newRules()
	if !out.parseSubject(&o.Spec.Subject) || !tierOK {
		return out
	}
	for i := range o.Spec.Ingress {
		r := &o.Spec.Ingress[i]
		c := clusterRule{direction: Ingress, index: i, name: r.Name, action: r.Action, protocols: r.Protocols}
		for j := range r.From {
			c.peers = append(c.peers, v1alpha2.ClusterNetworkPolicyEgressPeer{Namespaces: r.From[j].Namespaces, Pods: r.From[j].Pods})
		}
		out.clusterRule(&c)
	}
	for i := range o.Spec.Egress {
		r := &o.Spec.Egress[i]
		out.clusterRule(&clusterRule{direction: Egress, index: i, name: r.Name, action: r.Action, protocols: r.Protocols, peers: r.To})
	}
	if out.parsed.tooMany {
		out.bad.add("spec", errTooManySets)
		out.parsed.sets = nil
		for d := range out.parsed.policy.Rules {
			for i, r := range out.parsed.policy.Rules[d] {
				out.parsed.policy.Rules[d][i] = invalidRule(r.Name, r.Action)
			}
		}
	}
	for d := range out.directions {
		out.directions[d] = len(out.parsed.policy.Rules[d]) > 0
	}
	return out
}

// An unknown tier is read as the first, an unknown action as Deny.
var (
	tiersOf   = map[v1alpha2.Tier]Tier{v1alpha2.AdminTier: TierAdmin, v1alpha2.BaselineTier: TierBaseline}
	actionsOf = map[v1alpha2.ClusterNetworkPolicyRuleAction]Action{
		v1alpha2.ClusterNetworkPolicyRuleActionAccept: Accept,
		v1alpha2.ClusterNetworkPolicyRuleActionDeny:   Deny,
		v1alpha2.ClusterNetworkPolicyRuleActionPass:   Pass,
	}
)

var errOneField = errors.New("exactly one field that is known must be set")

func (o *PolicyObject) parseSubject(in *v1alpha2.ClusterNetworkPolicySubject) (ok bool) {
	s, err := o.clusterPods("spec.subject", in.Namespaces, in.Pods)
	if err != nil {
		o.bad.add("spec.subject", err)
		return false
	}
	o.namespaces, o.pods = s.namespaces, s.pods
	return true
}

type clusterRule struct {
	direction Direction
	index     int
	name      string
	action    v1alpha2.ClusterNetworkPolicyRuleAction
	peers     []v1alpha2.ClusterNetworkPolicyEgressPeer
	protocols []v1alpha2.ClusterNetworkPolicyProtocol
}

func (o *PolicyObject) clusterRule(in *clusterRule) {
	name := index(in.direction.String(), in.index)
	field := "spec." + name
	if in.name != "" {
		name += fmt.Sprintf(" %q", in.name)
	}
	r := ruleBuilder{policy: o, rules: o.parsed, direction: in.direction, rule: Rule{Name: name, AllPorts: len(in.protocols) == 0}}
	if action, known := actionsOf[in.action]; known {
		r.rule.Action = action
	} else {
		r.rule.Action = Deny
		o.bad.add(field+".action", fmt.Errorf("unknown action %q: want Accept, Deny or Pass", in.action))
	}
	valid := o.clusterPeers(&r, field, in.peers)
	for i := range in.protocols {
		if err := clusterPort(&r, &in.protocols[i]); err != nil {
			o.bad.add(index(field+".protocols", i), err)
			valid = false
		}
	}
	rule := invalidRule(name, r.rule.Action)
	if valid {
		rule = r.done()
	}
	rules := &o.parsed.policy.Rules[in.direction]
	*rules = append(*rules, rule)
}

func invalidRule(name string, a Action) Rule {
	if a == Accept {
		return Rule{Name: name, Action: Accept}
	}
	return Rule{Name: name, Action: Deny, Any: true, AllPorts: true}
}

func (o *PolicyObject) clusterPeers(r *ruleBuilder, field string, peers []v1alpha2.ClusterNetworkPolicyEgressPeer) bool {
	list := field + ".from"
	if r.direction == Egress {
		list = field + ".to"
	}
	if len(peers) == 0 {
		o.bad.add(list, errors.New("the list is empty"))
	}
	valid := len(peers) > 0
	for i := range peers {
		if err := o.clusterPeer(r, index(list, i), &peers[i]); err != nil {
			o.bad.add(index(list, i), err)
			valid = false
		}
	}
	return valid
}

func (o *PolicyObject) clusterPeer(r *ruleBuilder, field string, in *v1alpha2.ClusterNetworkPolicyEgressPeer) error {
	switch {
	case in.Nodes != nil:
		return errors.New("nodes as peers are not supported")
	case len(in.DomainNames) > 0:
		return errors.New("domain names as peers are not supported")
	case len(in.Networks) > 0 && (in.Namespaces != nil || in.Pods != nil):
		return errOneField
	case len(in.Networks) == 0:
		s, err := o.clusterPods(field, in.Namespaces, in.Pods)
		if err == nil {
			r.peers = append(r.peers, s)
		}
		return err
	}
	for _, text := range in.Networks {
		p, err := network.ParsePrefix(string(text))
		if err != nil {
			return err
		}
		r.rule.Blocks = append(r.rule.Blocks, RangeOf(p))
	}
	return nil
}

var errSelector = errors.New("the selector is not valid")

func (o *PolicyObject) clusterPods(field string, namespaces *metav1.LabelSelector, pods *v1alpha2.NamespacedPod) (selection, error) {
	out := selection{namespaces: all(), pods: all()}
	var ok bool
	switch {
	case namespaces != nil && pods == nil:
		out.namespaces, ok = parseSelector(field+".namespaces", namespaces, &o.bad)
	case namespaces == nil && pods != nil:
		out.namespaces, ok = parseSelector(field+".pods.namespaceSelector", &pods.NamespaceSelector, &o.bad)
		var podsOK bool
		out.pods, podsOK = parseSelector(field+".pods.podSelector", &pods.PodSelector, &o.bad)
		ok = ok && podsOK
	default:
		return out, errOneField
	}
	if !ok {
		return out, errSelector
	}
	return out, nil
}

func clusterPort(r *ruleBuilder, in *v1alpha2.ClusterNetworkPolicyProtocol) error {
	set := 0
	var protocol Protocol
	var port *v1alpha2.Port
	if in.TCP != nil {
		set, protocol, port = set+1, TCP, in.TCP.DestinationPort
	}
	if in.UDP != nil {
		set, protocol, port = set+1, UDP, in.UDP.DestinationPort
	}
	if in.SCTP != nil {
		set, protocol, port = set+1, SCTP, in.SCTP.DestinationPort
	}
	if in.DestinationNamedPort != "" {
		set++
	}
	switch {
	case set != 1:
		return errOneField
	case in.DestinationNamedPort != "":
		r.named = append(r.named, portName{name: intern(in.DestinationNamedPort)})
		return nil
	case port == nil:
		r.rule.Ports = append(r.rule.Ports, PortRange{Protocol: protocol})
		return nil
	case (port.Number != 0) == (port.Range != nil):
		return errOneField
	}
	first, last := port.Number, port.Number
	if port.Range != nil {
		first, last = port.Range.Start, port.Range.End
	}
	ports, err := parsePortRange(protocol, first, last)
	if err == nil {
		r.rule.Ports = append(r.rule.Ports, ports)
	}
	return err
}
