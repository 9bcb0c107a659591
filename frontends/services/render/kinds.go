package render

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// localSlots is the first slot of the Local list if a listener has both lists, after the Cluster list and
// draining endpoints.
const localSlots = 1_000_000

type target uint8

const (
	// absent means no element, present an element without a chain in the verdict
	absent target = iota
	present
	dropped
	rejected
	// shortcut accepts only traffic exempt from the policy Local.
	shortcut
	pick
	recall
	remember
)

type way uint8

const (
	direct way = iota
	masqueraded
	// kept keeps the source and, except for shortcuts, uses only endpoints on this node.
	kept
	// internal is direct with the Local list. It differs from direct only in recall chains.
	internal
	numWays
)

type verdict struct {
	to               target
	nodePort, sticky uint8
	way              way
	n                int32
}

var shortcutChains = [2]string{chainShortcut, chainNodePortShortcut}

// by affinity, NodePort and way
var pickNames = [2][2][]string{
	{
		{"pick-", "external-pick-", "local-pick-"},
		{"nodeport-shortcut-pick-", "nodeport-pick-", "nodeport-local-pick-"},
	},
	{
		{direct: "sticky-", kept: "local-sticky-"},
		{direct: "nodeport-sticky-", kept: "nodeport-local-sticky-"},
	},
}

// by NodePort and way
var recallNames = [2][]string{
	{"recall-", "external-recall-", "local-recall-", "internal-recall-"},
	{"nodeport-shortcut-recall-", "nodeport-recall-", "nodeport-local-recall-"},
}

func (v verdict) compare(o verdict) int {
	return cmp.Or(cmp.Compare(v.to, o.to), cmp.Compare(v.sticky, o.sticky), cmp.Compare(v.nodePort, o.nodePort),
		cmp.Compare(v.way, o.way), cmp.Compare(v.n, o.n))
}

func (v verdict) chain() string { return string(v.appendChain(nil)) }

func (v verdict) appendChain(b []byte) []byte {
	return strconv.AppendInt(append(b, pickNames[v.sticky][v.nodePort][v.way]...), int64(v.n), 10)
}

func (v verdict) list() list {
	if v.way == kept || v.way == internal {
		return byLocal
	}
	return byCluster
}

// a is the port's affinity.
func (v verdict) append(b []byte, a *affinity) []byte {
	switch v.to {
	case dropped:
		return append(b, "goto "+chainDrop...)
	case rejected:
		return append(b, "goto "+chainReject...)
	case shortcut:
		return append(append(b, "goto "...), shortcutChains[v.nodePort]...)
	case pick:
		return v.appendChain(append(b, "goto "...))
	case recall:
		return append(append(append(b, "goto "...), recallNames[v.nodePort][v.way]...), a.name...)
	case remember:
		return append(append(b, "goto "+rememberPrefix...), a.name...)
	case absent, present:
		return b
	default:
		panic(fmt.Sprintf("render: unknown target %d", v.to))
	}
}

func parsePick(name string) (verdict, bool) {
	at := strings.LastIndexByte(name, '-') + 1
	n, err := strconv.Atoi(name[at:])
	if err != nil || n < 1 || n > model.MaxEndpoints || strconv.Itoa(n) != name[at:] {
		return verdict{}, false
	}
	for i := range 2 * 2 * internal {
		v := verdict{to: pick, sticky: uint8(i & 1), nodePort: uint8(i >> 1 & 1), way: i >> 2, n: int32(n)}
		if prefix := pickNames[v.sticky][v.nodePort][v.way]; prefix == name[:at] && prefix != "" {
			return v, true
		}
	}
	return verdict{}, false
}

func (v verdict) listener() string {
	if v.nodePort != 0 {
		return "meta l4proto . th dport"
	}
	return "ip daddr . meta l4proto . th dport"
}

func (t *table) pick(cfg *Config, v verdict) *weftv1.Chain {
	var rules []string
	if v.sticky == 0 {
		rules = t.before(cfg, v)
	}
	slot := fmt.Sprintf("%s . numgen random mod %d", v.listener(), v.n)
	if v.way == kept {
		slot += fmt.Sprintf(" offset %d", localSlots)
	}
	// nft requires a protocol match before a map to a port.
	return chain(v.chain(), append(rules, t.names.spell(fmt.Sprintf("meta l4proto { tcp, udp, sctp } dnat ip to %s map @%s",
		slot, declarations[slotSets[v.nodePort]].name)))...)
}

func (t *table) before(cfg *Config, v verdict) (rules []string) {
	switch v.way {
	case direct, internal:
	case masqueraded:
		rules = append(rules, cfg.mark())
	case kept:
		rules = append(rules, "jump "+shortcutChains[v.nodePort])
	default:
		panic(fmt.Sprintf("render: unknown way %d", v.way))
	}
	if cfg.Counters >= CountServices {
		rules = append(rules, t.names.spell(v.listener()+" @"+declarations[roleSets[v.nodePort][roleCounted]].name))
	}
	return rules
}
