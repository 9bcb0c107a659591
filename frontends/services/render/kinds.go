package render

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// localSlots is the first slot of the endpoints for the traffic policy Local of a
// listener with both policies. It leaves room for the endpoints of the policy Cluster and
// those that drain.
const localSlots = 1_000_000

// target is what a map has for a listener.
type target uint8

const (
	// absent means that the map has no such key.
	absent target = iota
	// present is the key of a set, which has no data.
	present
	dropped
	rejected
	// shortcut accepts only traffic that need not keep to the traffic policy Local.
	shortcut
	// pick is a chain that picks an endpoint.
	pick
	// remember is a chain that remembers the endpoint of a client.
	remember
)

// way is how a flow reaches endpoints.
type way uint8

const (
	// direct keeps the source.
	direct way = iota
	// masqueraded does not.
	masqueraded
	// kept keeps the source, and except for shortcuts uses only endpoints on this node.
	kept
	// internal is direct from the list of the policy Local. Only chains with affinity differ
	// from those of direct.
	internal
	numWays
)

// verdict is a target, and which of its chains it is.
type verdict struct {
	to target
	// nodePort is 1 for NodePorts and 0 for addresses, sticky is 1 with affinity.
	nodePort, sticky uint8
	way              way
	// n is the number of endpoints that a chain picks from: there is a chain for each. With
	// affinity there is one for each port instead, and n is 0 in maps.
	n int32
}

// shortcutChains are the chains of shortcut, by NodePort.
var shortcutChains = [2]string{chainShortcut, chainNodePortShortcut}

// pickNames are the names of chains that pick, without the number, and stickyNames those
// with affinity, without the name of the port: by NodePort and way.
var (
	pickNames = [2][kept + 1]string{
		{"pick-", "external-pick-", "local-pick-"},
		{"nodeport-shortcut-pick-", "nodeport-pick-", "nodeport-local-pick-"},
	}
	stickyNames = [2][]string{
		{"sticky-", "external-sticky-", "local-sticky-", "internal-sticky-"},
		{"nodeport-shortcut-sticky-", "nodeport-sticky-", "nodeport-local-sticky-"},
	}
)

func (v verdict) compare(o verdict) int {
	return cmp.Or(cmp.Compare(v.to, o.to), cmp.Compare(v.sticky, o.sticky), cmp.Compare(v.nodePort, o.nodePort),
		cmp.Compare(v.way, o.way), cmp.Compare(v.n, o.n))
}

// appendChain writes the name of the chain that picks, with the affinity of its port.
func (v verdict) appendChain(b []byte, a *affinity) []byte {
	if v.sticky != 0 {
		return append(append(b, stickyNames[v.nodePort][v.way]...), a.name...)
	}
	return strconv.AppendInt(append(b, pickNames[v.nodePort][v.way]...), int64(v.n), 10)
}

// list returns the list that a chain with affinity uses.
func (v verdict) list() list {
	if v.way == kept || v.way == internal {
		return byLocal
	}
	return byCluster
}

// append writes the verdict as an element's value.
func (v verdict) append(b []byte, a *affinity) []byte {
	switch v.to {
	case dropped:
		return append(b, "goto "+chainDrop...)
	case rejected:
		return append(b, "goto "+chainReject...)
	case shortcut:
		return append(append(b, "goto "...), shortcutChains[v.nodePort]...)
	case pick:
		return v.appendChain(append(b, "goto "...), a)
	case remember:
		return append(append(b, "goto "+rememberPrefix...), a.name...)
	case absent, present:
		return b
	default:
		panic(fmt.Sprintf("render: unknown target %d", v.to))
	}
}

// parsePick is the inverse of verdict.appendChain without affinity.
func parsePick(name string) (verdict, bool) {
	at := strings.LastIndexByte(name, '-') + 1
	n, err := strconv.Atoi(name[at:])
	if err != nil || n < 1 || n > model.MaxEndpoints || strconv.Itoa(n) != name[at:] {
		return verdict{}, false
	}
	for nodePort, of := range pickNames {
		for w, prefix := range of {
			if prefix == name[:at] {
				return verdict{to: pick, nodePort: uint8(nodePort), way: way(w), n: int32(n)}, true
			}
		}
	}
	return verdict{}, false
}

// pick returns the chain that sends a flow to the endpoint that its client has, if the port
// has affinity, or else to one of n endpoints.
func (t *table) pick(cfg *Config, v verdict, a *affinity) *weftv1.Chain {
	in := &declarations[slotSets[v.nodePort]]
	listener := "ip daddr . meta l4proto . th dport"
	if in.nodePort {
		listener = "meta l4proto . th dport"
	}
	var rules, count []string
	if cfg.Counters >= CountServices {
		count = []string{t.names.spell(listener + " @" + declarations[roleSets[v.nodePort][roleCounted]].name)}
	}
	slot := fmt.Sprintf("%s . numgen random mod %d", listener, v.n)
	switch v.way {
	case direct, internal:
	case masqueraded:
		rules = append(rules, cfg.mark())
	case kept:
		// Traffic that need not keep to the policy Local goes to all endpoints.
		rules = append(rules, "jump "+shortcutChains[v.nodePort])
		slot += fmt.Sprintf(" offset %d", localSlots)
	default:
		panic(fmt.Sprintf("render: unknown way %d", v.way))
	}
	rules = append(rules, count...)
	if a != nil {
		rules = append(rules, a.recall(t.names, v.list()))
	}
	// nft requires a match of the protocol before it maps to a port.
	return chain(string(v.appendChain(nil, a)), append(rules, t.names.spell("meta l4proto { tcp, udp, sctp } dnat ip to "+slot+" map @"+in.name))...)
}
