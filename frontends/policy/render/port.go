package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-proxy/weft/frontends/policy/model"
)

var protocols = [...]model.Protocol{model.TCP, model.UDP, model.SCTP}

// nft 1.0.6 can list an anonymous set of protocols and ports, but not of ports of a tuple.
const (
	protocolAndPort = "meta l4proto . "
	namedPortType   = " . inet_proto . inet_service"
	portType        = "inet_service"
	maxPort         = 65535
)

// ports returns matches of which one must match.
func (b *chainBuilder) ports(of model.PolicyID, r *model.Rule) []match {
	if r.AllPorts {
		return everything
	}
	var out []match
	var whole []string
	for _, p := range protocols {
		in := portRanges(r.Ports, p)
		switch {
		case len(in) == 0:
		case in[0].First == 0 && in[0].Last == maxPort:
			whole = append(whole, p.String())
		default:
			out = append(out, b.portsOf(p, in))
		}
	}
	switch len(whole) {
	case 0:
	case 1:
		out = append(out, match{text: "meta l4proto " + whole[0]})
	default:
		out = append(out, match{text: "meta l4proto { " + strings.Join(whole, ", ") + " }"})
	}
	return append(out, b.namedPorts(of, r)...)
}

func (b *chainBuilder) namedPorts(of model.PolicyID, r *model.Rule) (out []match) {
	for _, id := range r.NamedPorts {
		set := b.sets[id]
		if b.lookup == untracked {
			continue
		}
		if set == nil {
			if r.Action == model.Deny {
				// Indistinguishable packets are denied.
				return everything
			}
			continue
		}
		for _, p := range protocols {
			out = append(out, set.named(fmt.Sprintf("meta l4proto %s %s . %s @%s", p, b.destination(b.lookup), protocolAndPort+b.lookup.port(), set.name), r.Action, of))
		}
	}
	return out
}

func (b *chainBuilder) portsOf(p model.Protocol, ports []model.PortRange) match {
	protocol := "meta l4proto " + p.String() + " "
	if len(ports) == 1 {
		return match{text: protocol + b.lookup.port() + " " + portText(ports[0])}
	}
	keys := make([]string, len(ports))
	single := true
	for i, x := range ports {
		keys[i] = portText(x)
		single = single && x.First == x.Last
	}
	if single {
		for i, k := range keys {
			keys[i] = p.String() + separator + k
		}
		return match{text: protocol + protocolAndPort + b.lookup.port() + " { " + strings.Join(keys, ", ") + " }"}
	}
	// The kernel would fill an anonymous set of ranges after the switch to the chain.
	id := identify(append([]string{"ports"}, keys...)...)
	set := b.intern(id, "range", "", func(name string) *object { return &object{content: intervals(name, portType, keys)} })
	return match{text: protocol + b.lookup.port() + " @" + set.name, need: set}
}

// The result is sorted, disjoint and not adjacent.
func portRanges(all []model.PortRange, of model.Protocol) []model.PortRange {
	out := model.MergePorts(slices.DeleteFunc(slices.Clone(all), func(p model.PortRange) bool { return p.Protocol != of }))
	for i := range out {
		if out[i].First == 0 {
			out[i].Last = maxPort
		}
	}
	return out
}

func portText(p model.PortRange) string {
	text := strconv.Itoa(int(p.First))
	if p.Last > p.First {
		text += "-" + strconv.Itoa(int(p.Last))
	}
	return text
}
