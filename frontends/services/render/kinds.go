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
	// shortcut and nodePortShortcut accept only traffic that need not keep to the traffic
	// policy Local.
	shortcut
	nodePortShortcut
	// The others are kinds of chains, with one chain for each number of endpoints.
	pick
	externalPick
	localPick
	nodePortPick
	nodePortShortcutPick
	nodePortLocalPick
	sticky
	externalSticky
	localSticky
	nodePortSticky
	nodePortShortcutSticky
	nodePortLocalSticky
	numTargets
)

// step is a part of a chain before it picks an endpoint.
type step uint8

const (
	nothing step = iota
	// mark requests masquerading.
	mark
	// jumpShortcut sends traffic that need not keep to the policy Local to all endpoints.
	jumpShortcut
)

// targets are the texts of each target. Those with a map are chains.
var targets = [numTargets]struct {
	// text is the whole verdict, or the name of the chain without the number.
	text   string
	before step
	in     set
	// local is true if the endpoint is picked from the slots from localSlots on.
	local bool
}{
	dropped:          {text: "drop"},
	rejected:         {text: "goto " + chainReject},
	shortcut:         {text: "goto " + chainShortcut},
	nodePortShortcut: {text: "goto " + chainNodePortShortcut},

	pick:                 {text: "pick-", in: endpoints},
	externalPick:         {text: "external-pick-", in: endpoints, before: mark},
	localPick:            {text: "local-pick-", in: endpoints, before: jumpShortcut, local: true},
	nodePortPick:         {text: "nodeport-pick-", in: nodePortEndpoints, before: mark},
	nodePortShortcutPick: {text: "nodeport-shortcut-pick-", in: nodePortEndpoints},
	nodePortLocalPick:    {text: "nodeport-local-pick-", in: nodePortEndpoints, before: jumpShortcut, local: true},

	sticky:                 {text: "sticky-", in: stickyEndpoints},
	externalSticky:         {text: "external-sticky-", in: stickyEndpoints, before: mark},
	localSticky:            {text: "local-sticky-", in: stickyEndpoints, before: jumpShortcut, local: true},
	nodePortSticky:         {text: "nodeport-sticky-", in: nodePortStickyEndpoints, before: mark},
	nodePortShortcutSticky: {text: "nodeport-shortcut-sticky-", in: nodePortStickyEndpoints},
	nodePortLocalSticky:    {text: "nodeport-local-sticky-", in: nodePortStickyEndpoints, before: jumpShortcut, local: true},
}

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

// picks are the kinds of chains by NodePort (1) or address (0), affinity (1) or none (0),
// and way.
var picks = [2][2][numWays]target{
	{{pick, externalPick, localPick}, {sticky, externalSticky, localSticky}},
	{{nodePortShortcutPick, nodePortPick, nodePortLocalPick}, {nodePortShortcutSticky, nodePortSticky, nodePortLocalSticky}},
}

// verdict is a target, with the number of endpoints if it is a chain that picks.
type verdict struct {
	to target
	n  int32
}

// picks reports whether the verdict is a chain that picks an endpoint.
func (v verdict) picks() bool { return v.to >= pick }

func (v verdict) compare(o verdict) int {
	return cmp.Or(cmp.Compare(v.to, o.to), cmp.Compare(v.n, o.n))
}

// chain returns the name of the chain that picks.
func (v verdict) chain() string { return targets[v.to].text + strconv.Itoa(int(v.n)) }

// append writes the verdict as an element's value.
func (v verdict) append(b []byte) []byte {
	if !v.picks() {
		return append(b, targets[v.to].text...)
	}
	b = append(append(b, "goto "...), targets[v.to].text...)
	return strconv.AppendInt(b, int64(v.n), 10)
}

// parsePick is the inverse of verdict.chain.
func parsePick(name string) (verdict, bool) {
	at := strings.LastIndexByte(name, '-') + 1
	n, err := strconv.Atoi(name[at:])
	if err != nil || n < 1 || n > model.MaxEndpoints || strconv.Itoa(n) != name[at:] {
		return verdict{}, false
	}
	for to := pick; to < numTargets; to++ {
		if targets[to].text == name[:at] {
			return verdict{to, int32(n)}, true
		}
	}
	return verdict{}, false
}

// pick returns the chain that sends a flow to one of n endpoints.
func (t *table) pick(cfg *Config, v verdict) *weftv1.Chain {
	k := &targets[v.to]
	jump, listener := chainShortcut, "ip daddr . meta l4proto . th dport"
	if declarations[k.in].nodePort {
		jump, listener = chainNodePortShortcut, "meta l4proto . th dport"
	}
	var rules []string
	switch k.before {
	case mark:
		rules = append(rules, cfg.mark())
	case jumpShortcut:
		rules = append(rules, "jump "+jump)
	case nothing:
	}
	slot := fmt.Sprintf("%s . numgen random mod %d", listener, v.n)
	if k.local {
		slot += fmt.Sprintf(" offset %d", localSlots)
	}
	name := declarations[k.in].name
	if declarations[k.in].sticky {
		return chain(v.chain(), append(rules, t.names.spell(slot+" vmap @"+name))...)
	}
	// nft requires a match of the protocol before it maps to a port.
	return chain(v.chain(), append(rules, t.names.spell("meta l4proto { tcp, udp, sctp } dnat ip to "+slot+" map @"+name))...)
}
