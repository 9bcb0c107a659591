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
	numWays
)

// verdict is a target, and which of its chains it is.
type verdict struct {
	to target
	// nodePort is 1 for NodePorts and 0 for addresses, sticky is 1 with affinity.
	nodePort, sticky uint8
	way              way
	// n is the number of endpoints that a chain picks from: there is a chain for each.
	n int32
}

// shortcutChains are the chains of shortcut, by NodePort.
var shortcutChains = [2]string{chainShortcut, chainNodePortShortcut}

// pickNames are the names of chains that pick, without the number: by affinity, NodePort
// and way.
var pickNames = [2][2][numWays]string{
	{
		{"pick-", "external-pick-", "local-pick-"},
		{"nodeport-shortcut-pick-", "nodeport-pick-", "nodeport-local-pick-"},
	},
	{
		{"sticky-", "external-sticky-", "local-sticky-"},
		{"nodeport-shortcut-sticky-", "nodeport-sticky-", "nodeport-local-sticky-"},
	},
}

func (v verdict) compare(o verdict) int {
	return cmp.Or(cmp.Compare(v.to, o.to), cmp.Compare(v.sticky, o.sticky), cmp.Compare(v.nodePort, o.nodePort),
		cmp.Compare(v.way, o.way), cmp.Compare(v.n, o.n))
}

// prefix returns the name of the chain that picks, without the number.
func (v verdict) prefix() string { return pickNames[v.sticky][v.nodePort][v.way] }

// chain returns the name of the chain that picks.
func (v verdict) chain() string { return v.prefix() + strconv.Itoa(int(v.n)) }

// append writes the verdict as an element's value.
func (v verdict) append(b []byte) []byte {
	switch v.to {
	case dropped:
		return append(b, "goto "+chainDrop...)
	case rejected:
		return append(b, "goto "+chainReject...)
	case shortcut:
		return append(append(b, "goto "...), shortcutChains[v.nodePort]...)
	case pick:
		b = append(append(b, "goto "...), v.prefix()...)
		return strconv.AppendInt(b, int64(v.n), 10)
	case absent, present:
		return b
	default:
		panic(fmt.Sprintf("render: unknown target %d", v.to))
	}
}

// parsePick is the inverse of verdict.chain.
func parsePick(name string) (verdict, bool) {
	at := strings.LastIndexByte(name, '-') + 1
	n, err := strconv.Atoi(name[at:])
	if err != nil || n < 1 || n > model.MaxEndpoints || strconv.Itoa(n) != name[at:] {
		return verdict{}, false
	}
	for i := range 2 * 2 * numWays {
		v := verdict{to: pick, sticky: uint8(i & 1), nodePort: uint8(i >> 1 & 1), way: i >> 2, n: int32(n)}
		if v.prefix() == name[:at] {
			return v, true
		}
	}
	return verdict{}, false
}

// pick returns the chain that sends a flow to one of n endpoints.
func (t *table) pick(cfg *Config, v verdict) *weftv1.Chain {
	in := &declarations[slotSets[v.nodePort][v.sticky]]
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
	case direct:
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
	if in.sticky {
		return chain(v.chain(), append(rules, t.names.spell(slot+" vmap @"+in.name))...)
	}
	// nft requires a match of the protocol before it maps to a port.
	return chain(v.chain(), append(rules, t.names.spell("meta l4proto { tcp, udp, sctp } dnat ip to "+slot+" map @"+in.name))...)
}
