package aggregator_test

import (
	"fmt"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// Services is a data plane of Count services with Endpoints endpoints each, TCP and
// UDP in turns, for tests and benchmarks of sizes: a map of services that leads to a
// chain, and a map of their endpoints, from which the chain's rule picks one.
type Services struct{ Count, Endpoints int }

// Elements is the number of elements in its two maps.
func (s Services) Elements() int { return s.Count * (s.Endpoints + 1) }

// key is that of service n. It has the same length for each when packed.
func (s Services) key(n int) string {
	return fmt.Sprintf("10.%d.%d.%d . %s . 80", 96+n>>16, n>>8&255, n&255, []string{"tcp", "udp"}[n%2])
}

// Endpoint returns endpoint e of service n; turn varies its port.
func (s Services) Endpoint(n, e, turn int) *weftv1.Element {
	at := n*s.Endpoints + e
	return &weftv1.Element{
		Key:   fmt.Sprintf("%s . %d", s.key(n), e),
		Value: fmt.Sprintf("10.%d.%d.%d . %d", 128+at>>16, at>>8&255, at&255, 8080+turn),
	}
}

// chain is the name of the chain that picks an endpoint.
func (s Services) chain() string { return fmt.Sprintf("pick-%d", s.Endpoints) }

// rule is the chain's rule; turn varies its comment.
func (s Services) rule(turn int) *weftv1.Rule {
	pick := "meta l4proto { tcp, udp, sctp } dnat ip to ip daddr . meta l4proto . th dport . numgen random mod %d map @endpoints"
	return &weftv1.Rule{Text: fmt.Sprintf(pick, s.Endpoints), Comment: fmt.Sprint("turn ", turn)}
}

// Fragment returns the fragment "services", in table ip weft.
func (s Services) Fragment() *weftv1.Fragment {
	services := &weftv1.Set{Name: "services", Typeof: "ip daddr . meta l4proto . th dport : verdict"}
	endpoints := &weftv1.Set{Name: "endpoints", Role: weftv1.MapRole_MAP_ROLE_CONNTRACK, Typeof: "ip daddr . meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport"}
	for n := range s.Count {
		services.Elements = append(services.Elements, &weftv1.Element{Key: s.key(n), Value: "goto " + s.chain()})
		for e := range s.Endpoints {
			endpoints.Elements = append(endpoints.Elements, s.Endpoint(n, e, 0))
		}
	}
	return &weftv1.Fragment{Name: "services", Tables: []*weftv1.Table{{
		Family: "ip", Name: "weft", Maps: []*weftv1.Set{services, endpoints},
		Chains: []*weftv1.Chain{
			{Name: s.chain(), Rules: []*weftv1.Rule{s.rule(0)}},
			{
				Name: "nat-prerouting", Type: "nat", Hook: "prerouting", Priority: "dstnat",
				Rules: []*weftv1.Rule{{Text: "ip daddr . meta l4proto . th dport vmap @services"}},
			},
		},
	}}}
}

// ReplaceEndpoint is the patch that replaces one endpoint.
func (s Services) ReplaceEndpoint(n, e, turn int) *weftv1.Patch {
	return &weftv1.Patch{Fragment: "services", Tables: []*weftv1.TablePatch{{
		Family: "ip", Name: "weft",
		Elements: []*weftv1.ElementPatch{{Set: "endpoints", Add: []*weftv1.Element{s.Endpoint(n, e, turn)}}},
	}}}
}

// ReplaceRules is the patch that replaces the rules of one chain.
func (s Services) ReplaceRules(turn int) *weftv1.Patch {
	return &weftv1.Patch{Fragment: "services", Tables: []*weftv1.TablePatch{{
		Family: "ip", Name: "weft",
		PutChains: []*weftv1.Chain{{Name: s.chain(), Rules: []*weftv1.Rule{s.rule(turn)}}},
	}}}
}
