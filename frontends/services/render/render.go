package render

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// Renderer holds what has been rendered: which endpoint sits in which slot, and
// how often the shared objects are used.
type Renderer struct {
	cfg      Config
	tables   [model.Families]*table
	services map[model.Key]*rendered
	node     model.Node
	owners   owners
	// elements are how many slots are filled.
	elements int
	work     uint64
}

// table is the state of one family's table.
type table struct {
	family model.Family
	words  family
	// on is true once the family is in use; a table is never taken away
	// while the frontend runs.
	on    bool
	aside aside

	nodePort     nodePortMode
	nodePortKeys []string
	// pods are how flows of this node's pods are known.
	pods         detection
	serviceCIDRs []string

	clusterIPs counted[netip.Addr]
	hairpins   counted[hairpinKey]
	picks      counted[verdict]
	// hooked are the roles whose chains on demand are in use.
	hooked counted[role]
	// idleHooks are the roles whose chains on demand are declared without a use.
	idleHooks map[role]struct{}
	// idlePicks are declared chains that pick without a use, idleChains and idleMaps
	// the names of what remembered endpoints. Those chains are empty.
	idlePicks  map[verdict]struct{}
	idleChains map[string]struct{}
	idleMaps   map[string]struct{}
	// hints are the slots that a predecessor had assigned.
	hints map[frontKey]*hint
}

// nodePortMode says how the addresses that answer on NodePorts are known.
type nodePortMode uint8

const (
	// nodePortAddresses: those in the set nodeport-ips.
	nodePortAddresses nodePortMode = iota
	// nodePortPrefixes: local ones inside the prefixes in that set.
	nodePortPrefixes
	// nodePortAll: local ones but the loopback.
	nodePortAll
)

// hairpinKey is an endpoint that may talk to itself.
type hairpinKey struct {
	addr     netip.AddrPort
	protocol model.Protocol
}

func (h hairpinKey) compare(o hairpinKey) int {
	return cmp.Or(h.addr.Compare(o.addr), cmp.Compare(h.protocol, o.protocol))
}

func (h hairpinKey) String() string {
	a := h.addr.Addr().String()
	return fmt.Sprintf("%s . %s . %s . %d", a, a, h.protocol, h.addr.Port())
}

// New returns a renderer of an empty model.
func New(cfg Config) (*Renderer, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("configure rendering: %w", err)
	}
	r := &Renderer{cfg: cfg, services: make(map[model.Key]*rendered), owners: newOwners()}
	for f := range model.Families {
		t := &table{
			family: f, words: familyOf(f),
			clusterIPs: newCounted[netip.Addr](), hairpins: newCounted[hairpinKey](),
			picks: newCounted[verdict](), idlePicks: make(map[verdict]struct{}),
			hooked: newCounted[role](), idleHooks: make(map[role]struct{}),
			idleChains: make(map[string]struct{}), idleMaps: make(map[string]struct{}),
		}
		t.on = cfg.Families[f] && (f == model.IPv4 || len(prefixes(cfg.Detect.CIDRs, f)) > 0)
		r.tables[f] = t
	}
	r.setNode(model.Node{})
	return r, nil
}

// setNode works out which addresses answer on NodePorts, and who the node's pods
// are.
func (r *Renderer) setNode(n model.Node) {
	r.node = n
	for f, t := range r.tables {
		t.nodePort, t.nodePortKeys = r.nodePortsOf(model.Family(f))
		t.pods = t.detect(&r.cfg, n.PodCIDRs[f])
	}
}

func (r *Renderer) nodePortsOf(f model.Family) (nodePortMode, []string) {
	var keys []string
	if len(r.cfg.NodePortAddresses) > 0 {
		for _, p := range prefixes(r.cfg.NodePortAddresses, f) {
			if p.Bits() == 0 {
				return nodePortAll, nil
			}
			if !p.Addr().IsLoopback() {
				keys = append(keys, prefixText(p))
			}
		}
		return nodePortPrefixes, keys
	}
	n := &r.node.Addresses
	if !n[model.IPv4].IsValid() && !n[model.IPv6].IsValid() {
		return nodePortAll, nil
	}
	if n[f].IsValid() {
		keys = append(keys, n[f].String())
	}
	return nodePortAddresses, keys
}

// Services returns how many Services are rendered.
func (r *Renderer) Services() int { return len(r.services) }

// Elements returns how many endpoint slots are filled.
func (r *Renderer) Elements() int { return r.elements }

// Work returns how much has been looked at so far, but for snapshots: fronts, slots,
// endpoints that differ, chains, and keys of elements. What an update adds to it does
// not depend on how much else there is.
func (r *Renderer) Work() uint64 { return r.work }

// Idle reports whether chains or maps wait for Sweep.
func (r *Renderer) Idle() bool {
	for _, t := range r.tables {
		if len(t.idleHooks)+len(t.idlePicks)+len(t.idleChains)+len(t.idleMaps) > 0 {
			return true
		}
	}
	return false
}

// counted counts uses, and remembers what began or ended since the last time
// that it was asked.
type counted[K comparable] struct {
	uses map[K]int
	// before has whether a key that was touched had uses.
	before map[K]bool
}

func newCounted[K comparable]() counted[K] {
	return counted[K]{uses: make(map[K]int), before: make(map[K]bool)}
}

// add changes a count by one.
func (c *counted[K]) add(k K, by int) {
	n := c.uses[k]
	if _, seen := c.before[k]; !seen {
		c.before[k] = n > 0
	}
	if n += by; n == 0 {
		delete(c.uses, k)
		return
	}
	c.uses[k] = n
}

// take returns the keys that came into use and went out of it, sorted.
func (c *counted[K]) take(compare func(a, b K) int) (began, ended []K) {
	for k, had := range c.before {
		switch has := c.uses[k] > 0; {
		case has && !had:
			began = append(began, k)
		case had && !has:
			ended = append(ended, k)
		}
	}
	if len(c.before) > 0 {
		// To clear a map, or to range over it, costs what it once held.
		c.before = make(map[K]bool)
	}
	slices.SortFunc(began, compare)
	slices.SortFunc(ended, compare)
	return began, ended
}

// keys returns the keys in use, sorted.
func (c *counted[K]) keys(compare func(a, b K) int) []K {
	out := slices.AppendSeq(make([]K, 0, len(c.uses)), maps.Keys(c.uses))
	slices.SortFunc(out, compare)
	return out
}
