package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/weft-proxy/weft/frontends/source/network"
)

// ParsePolicy returns the parsed form of a NetworkPolicy.
//
// An invalid peer or port never matches. With an invalid requirement in podSelector, the pods
// selected by the rest are isolated without accepted traffic. With more than maxSets sets, no
// traffic is accepted.
func ParsePolicy(o *networkingv1.NetworkPolicy) *PolicyObject {
	out := &PolicyObject{
		id:  PolicyID{Tier: TierNetworkPolicy, Namespace: intern(o.Namespace), Name: strings.Clone(o.Name)},
		uid: types.UID(strings.Clone(string(o.UID))),
	}
	var ok bool
	out.pods, ok = parseSelector("spec.podSelector", &o.Spec.PodSelector, &out.bad)
	out.parseTypes(&o.Spec)
	var rules networkingv1.NetworkPolicySpec
	if ok && out.directions[Ingress] {
		rules.Ingress = o.Spec.Ingress
	}
	if ok && out.directions[Egress] {
		rules.Egress = o.Spec.Egress
	}
	parsed := out.newRules()
	out.parseRules(&rules, parsed, &out.bad)
	if parsed.tooMany {
		out.bad.add("spec", errTooManySets)
		rules = networkingv1.NetworkPolicySpec{}
	}
	spec, err := rules.Marshal()
	if err != nil {
		out.bad.add("spec", err)
		return out
	}
	out.spec = slices.Clip(spec)
	return out
}

// A manifest may lack policyTypes, which the API server sets (rule 2).
func (o *PolicyObject) parseTypes(spec *networkingv1.NetworkPolicySpec) {
	for i, t := range spec.PolicyTypes {
		switch t {
		case networkingv1.PolicyTypeIngress:
			o.directions[Ingress] = true
		case networkingv1.PolicyTypeEgress:
			o.directions[Egress] = true
		default:
			o.bad.add(index("spec.policyTypes", i), fmt.Errorf("unknown type %q: want Ingress or Egress", t))
		}
	}
	if o.directions == [NumDirections]bool{} {
		o.directions = [NumDirections]bool{Ingress: true, Egress: len(spec.Egress) > 0}
	}
}

func (o *PolicyObject) parseRules(spec *networkingv1.NetworkPolicySpec, out *policyRules, bad *findings) {
	p := ruleParser{policy: o, rules: out, bad: bad}
	for i := range spec.Ingress {
		p.rule(Ingress, i, spec.Ingress[i].From, spec.Ingress[i].Ports)
	}
	for i := range spec.Egress {
		p.rule(Egress, i, spec.Egress[i].To, spec.Egress[i].Ports)
	}
}

type ruleParser struct {
	policy *PolicyObject
	rules  *policyRules
	bad    *findings
}

func (p *ruleParser) rule(d Direction, i int, peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort) {
	name := index(d.String(), i)
	field := "spec." + name
	r := ruleBuilder{policy: p.policy, rules: p.rules, direction: d, rule: Rule{Name: name, Any: len(peers) == 0, AllPorts: len(ports) == 0}}
	list := field + ".from"
	if d == Egress {
		list = field + ".to"
	}
	for j := range peers {
		if err := p.peer(&r, index(list, j), &peers[j]); err != nil {
			p.bad.add(index(list, j), err)
		}
	}
	for j := range ports {
		if err := p.port(&r, &ports[j]); err != nil {
			p.bad.add(index(field+".ports", j), err)
		}
	}
	p.rules.policy.Rules[d] = append(p.rules.policy.Rules[d], r.done())
}

var (
	errNoPeer    = errors.New("the peer has neither podSelector nor namespaceSelector nor ipBlock")
	errMixedPeer = errors.New("the peer has an ipBlock and a selector")
)

func (p *ruleParser) peer(r *ruleBuilder, field string, in *networkingv1.NetworkPolicyPeer) error {
	switch {
	case in.IPBlock != nil && (in.PodSelector != nil || in.NamespaceSelector != nil):
		return errMixedPeer
	case in.IPBlock != nil:
		blocks, err := parseBlock(in.IPBlock.CIDR, in.IPBlock.Except)
		r.rule.Blocks = append(r.rule.Blocks, blocks...)
		return err
	case in.PodSelector == nil && in.NamespaceSelector == nil:
		return errNoPeer
	}
	s, ok, ok2 := selection{namespace: p.policy.id.Namespace, pods: all()}, true, true
	if in.NamespaceSelector != nil {
		s.namespace = ""
		s.namespaces, ok = parseSelector(field+".namespaceSelector", in.NamespaceSelector, p.bad)
	}
	if in.PodSelector != nil {
		s.pods, ok2 = parseSelector(field+".podSelector", in.PodSelector, p.bad)
	}
	if ok && ok2 {
		r.peers = append(r.peers, s)
	}
	return nil
}

// An invalid exception makes the block invalid, because its extent is unknown.
func parseBlock(cidr string, except []string) ([]Range, error) {
	whole, err := network.ParsePrefix(cidr)
	if err != nil {
		return nil, err
	}
	var out []Range
	for _, text := range except {
		e, err := network.ParsePrefix(text)
		if err != nil {
			return nil, err
		}
		if e.Addr().BitLen() != whole.Addr().BitLen() {
			return nil, fmt.Errorf("except %s is not of the same family as %s", text, cidr)
		}
		out = append(out, RangeOf(e))
	}
	return subtract(RangeOf(whole), out), nil
}

var errNamedRange = errors.New("endPort cannot be used with a named port")

func (p *ruleParser) port(r *ruleBuilder, in *networkingv1.NetworkPolicyPort) error {
	protocol := TCP
	if in.Protocol != nil {
		var err error
		if protocol, err = network.ParseProtocol(*in.Protocol); err != nil {
			return err
		}
	}
	switch {
	case in.Port == nil && in.EndPort != nil:
		return errors.New("endPort cannot be used without port")
	case in.Port == nil:
		r.rule.Ports = append(r.rule.Ports, PortRange{Protocol: protocol})
		return nil
	case in.Port.Type == intstr.String && in.EndPort != nil:
		return errNamedRange
	case in.Port.Type == intstr.String && in.Port.StrVal == "":
		return errors.New("the name of the port is empty")
	case in.Port.Type == intstr.String:
		r.named = append(r.named, portName{intern(in.Port.StrVal), protocol})
		return nil
	}
	last := in.Port.IntVal
	if in.EndPort != nil {
		last = *in.EndPort
	}
	ports, err := parsePortRange(protocol, in.Port.IntVal, last)
	if err == nil {
		r.rule.Ports = append(r.rule.Ports, ports)
	}
	return err
}

type portName struct {
	name     string
	protocol Protocol
}

type ruleBuilder struct {
	policy    *PolicyObject
	rules     *policyRules
	direction Direction
	rule      Rule
	peers     []selection
	named     []portName
}

func (r *ruleBuilder) done() Rule {
	for _, s := range r.peers {
		s.action = r.rule.Action
		r.rule.Pods = r.rules.set(r.rule.Pods, s)
	}
	r.rule.Blocks = slices.Clip(MergeRanges(r.rule.Blocks))
	for _, n := range r.named {
		for _, s := range r.destinations() {
			s.action, s.port, s.protocol = r.rule.Action, n.name, n.protocol
			r.rule.NamedPorts = r.rules.set(r.rule.NamedPorts, s)
		}
	}
	r.rule.Ports = slices.Clip(MergePorts(r.rule.Ports))
	for _, ids := range []*[]SetID{&r.rule.Pods, &r.rule.NamedPorts} {
		slices.Sort(*ids)
		*ids = slices.Clip(slices.Compact(*ids))
	}
	return r.rule
}

// destinations returns the selected local pods at ingress, and the peers at egress. Peers with
// addresses mean all pods.
func (r *ruleBuilder) destinations() []selection {
	switch {
	case r.direction == Ingress && r.policy.namespaces == nil:
		return []selection{{local: true, namespace: r.policy.id.Namespace, pods: r.policy.pods}}
	case r.direction == Ingress:
		return []selection{{local: true, namespaces: r.policy.namespaces, pods: r.policy.pods}}
	case r.rule.Any || len(r.rule.Blocks) > 0:
		return []selection{{namespaces: all(), pods: all()}}
	default:
		return r.peers
	}
}
