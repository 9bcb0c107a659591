package render

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/policy/model"
)

// bridge is the table bridge weft-policy: ports of pods with policies carry only packets of their
// pods' addresses, and neighbour discovery. The tables of the IP families judge bridged packets
// only if the bridge passes them on.
type bridge struct {
	pods          map[types.UID][]binding
	elements      map[binding]int      // number of pods per element
	sent, changed map[binding]struct{} // in the kernel, and possible differences
	declared      bool
}

type binding struct{ set, key string }

const (
	setEgressPorts  = "egress-ports"
	setIngressPorts = "ingress-ports"
	setAddresses4   = "addresses4"
	setAddresses6   = "addresses6"

	chainOutput  = "output"
	chainFromPod = "from-pod"
	chainToPod   = "to-pod"
)

func newBridge() bridge {
	return bridge{pods: make(map[types.UID][]binding), elements: make(map[binding]int), sent: make(map[binding]struct{}), changed: make(map[binding]struct{})}
}

// A nil pod removes the elements.
func (b *bridge) set(uid types.UID, pod *model.Pod) {
	for _, e := range b.pods[uid] {
		b.count(e, -1)
	}
	delete(b.pods, uid)
	if pod == nil || !pod.Link.Bridged || len(pod.Policies[model.Ingress])+len(pod.Policies[model.Egress]) == 0 {
		return
	}
	port := end{link: pod.Link.Name}.key()
	var all []binding
	for d, set := range [model.NumDirections]string{model.Ingress: setIngressPorts, model.Egress: setEgressPorts} {
		if len(pod.Policies[d]) > 0 {
			all = append(all, binding{set, port})
		}
	}
	for _, a := range pod.Addresses {
		set := setAddresses4
		if a.Is6() {
			set = setAddresses6
		}
		all = append(all, binding{set, port + separator + a.String()})
	}
	for _, e := range all {
		b.count(e, 1)
	}
	b.pods[uid] = all
}

func (b *bridge) count(e binding, n int) {
	if b.elements[e] += n; b.elements[e] == 0 {
		delete(b.elements, e)
	}
	b.changed[e] = struct{}{}
}

func (b *bridge) flush(p *patch) {
	if !b.declared && len(b.elements) > 0 {
		b.declared = true
		m := b.message()
		p.sets, p.chains = m.GetSets(), m.GetChains()
	}
	for _, e := range slices.SortedFunc(maps.Keys(b.changed), compareBindings) {
		switch _, has := b.sent[e]; {
		case b.elements[e] > 0 && !has:
			b.sent[e] = struct{}{}
			p.add(e.set, &weftv1.Element{Key: e.key})
		case b.elements[e] == 0 && has:
			delete(b.sent, e)
			p.remove(e.set, e.key)
		}
	}
	clear(b.changed)
}

func compareBindings(a, b binding) int {
	return cmp.Or(strings.Compare(a.set, b.set), strings.Compare(a.key, b.key))
}

// Bindings returns the bridge port of each pod address in a fragment.
func Bindings(f *weftv1.Fragment) map[netip.Addr]string {
	out := make(map[netip.Addr]string)
	for _, t := range f.GetTables() {
		for _, s := range t.GetSets() {
			if t.GetFamily() != "bridge" || s.GetName() != setAddresses4 && s.GetName() != setAddresses6 {
				continue
			}
			for _, e := range s.GetElements() {
				port, address, _ := strings.Cut(e.GetKey(), separator)
				if a, err := netip.ParseAddr(address); err == nil {
					out[a] = strings.Trim(port, `"`)
				}
			}
		}
	}
	return out
}

func (b *bridge) message() *weftv1.Table {
	out := &weftv1.Table{Family: "bridge", Name: Table}
	for _, set := range []struct{ name, kind, comment string }{
		{setEgressPorts, "ifname", "ports of pods with policies for egress"},
		{setIngressPorts, "ifname", "ports of pods with policies for ingress"},
		{setAddresses4, "ifname . ipv4_addr", "ports of pods with policies, and their addresses"},
		{setAddresses6, "ifname . ipv6_addr", "ports of pods with policies, and their addresses"},
	} {
		s := &weftv1.Set{Name: set.name, Type: set.kind, Comment: set.comment}
		for _, e := range slices.SortedFunc(maps.Keys(b.sent), compareBindings) {
			if e.set == set.name {
				s.Elements = append(s.Elements, &weftv1.Element{Key: e.key})
			}
		}
		out.Sets = append(out.Sets, s)
	}
	for _, c := range []struct{ name, port, side, advert string }{{chainFromPod, "iifname", "saddr", ""}, {chainToPod, "oifname", "daddr", ", nd-router-advert"}} {
		rules := []string{
			// Tagged packets bypass br_netfilter, and the receiver ignores the tag of VLAN 0.
			"ether type { 8021q, 8021ad } counter drop",
			"ether type arp return",
			"ip6 hoplimit 255 icmpv6 type { nd-router-solicit, nd-neighbor-solicit, nd-neighbor-advert" + c.advert + " } return",
			"icmpv6 type { " + discovery + ", nd-redirect } counter drop",
		}
		if c.name == chainToPod {
			// From a pod to itself through a Service.
			rules = append(rules, "oifname . ip saddr @"+setAddresses4+" counter drop", "oifname . ip6 saddr @"+setAddresses6+" counter drop")
		}
		out.Chains = append(out.Chains, chain(c.name, append(rules, c.port+" . ip "+c.side+" @"+setAddresses4+" return", c.port+" . ip6 "+c.side+" @"+setAddresses6+" return", "counter drop")...))
	}
	from, to := "iifname @"+setEgressPorts+" jump "+chainFromPod, "oifname @"+setIngressPorts+" jump "+chainToPod
	// Forwarded packets have no socket.
	output := []string{"meta skuid 0-4294967295 accept", to}
	for name, rules := range map[string][]string{chainForward: {from, to}, chainInput: {from}, chainOutput: output} {
		c := baseChain(name, rules)
		c.Priority = "filter"
		out.Chains = append(out.Chains, c)
	}
	slices.SortFunc(out.Chains, func(a, b *weftv1.Chain) int { return strings.Compare(a.GetName(), b.GetName()) })
	return out
}
