package model

import (
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weft-proxy/weft/frontends/source/network"
)

// ValidatePolicy returns a line for each part of a NetworkPolicy that the API server would reject.
func ValidatePolicy(o *networkingv1.NetworkPolicy) []string {
	all := *o
	// Ineffective rules count too.
	all.Spec.PolicyTypes = append(slices.Clone(o.Spec.PolicyTypes), networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress)
	bad := slices.DeleteFunc(ParsePolicy(&all).bad, func(f finding) bool { return f.why == errTooManySets.Error() })
	for i, r := range o.Spec.Ingress {
		validateRule(index("spec.ingress", i), ".from", r.From, r.Ports, &bad)
	}
	for i, r := range o.Spec.Egress {
		validateRule(index("spec.egress", i), ".to", r.To, r.Ports, &bad)
	}
	return bad.texts()
}

func validateRule(field, list string, peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort, bad *findings) {
	for i, p := range peers {
		if p.IPBlock == nil {
			continue
		}
		whole, err := network.ParsePrefix(p.IPBlock.CIDR)
		for _, text := range p.IPBlock.Except {
			if e, err2 := network.ParsePrefix(text); err == nil && err2 == nil && (e.Bits() <= whole.Bits() || !whole.Contains(e.Addr())) {
				bad.add(index(field+list, i), fmt.Errorf("except %s is not in %s, or is all of it", text, p.IPBlock.CIDR))
			}
		}
	}
	for i, p := range ports {
		if p.Port != nil && p.Port.Type == intstr.String && p.Port.StrVal != "" {
			if why := validation.IsValidPortName(p.Port.StrVal); len(why) > 0 {
				bad.add(index(field+".ports", i), fmt.Errorf("the name of the port, %q, %s", p.Port.StrVal, strings.Join(why, ", ")))
			}
		}
	}
}
