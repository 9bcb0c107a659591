package render

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// Renderer holds what is rendered: the slot of each endpoint, and the number of uses of
// shared objects.
type Renderer struct {
	cfg      Config
	tables   [model.Families]*table
	services map[model.Key]*rendered
	node     model.Node
	owners   owners
	// elements is the number of filled slots.
	elements int
	work     uint64
}

// table is the state of one family's table.
type table struct {
	family model.Family
	names  family
	// on is true once the family is in use; a table is not removed while the frontend
	// runs.
	on     bool
	frozen frozen

	nodePort     model.NodePortAddresses
	nodePortKeys []string
	// pods is how flows of this node's pods are recognized.
	pods         detection
	serviceCIDRs []string

	clusterIPs counted[netip.Addr]
	hairpins   counted[hairpinKey]
	picks      counted[verdict]
	// hooked are the roles whose chains on demand are in use.
	hooked counted[role]
	// idleHooks are the roles whose chains on demand are declared without a use.
	idleHooks map[role]struct{}
	// idlePicks are declared chains that pick without a use. idleChains and idleMaps are
	// the names of chains and maps of session affinity without a use; those chains are
	// empty.
	idlePicks  map[verdict]struct{}
	idleChains map[string]struct{}
	idleMaps   map[string]struct{}
	// previous are the slots that an earlier process assigned.
	previous map[listenerKey]*previousSlots
}

// hairpinKey is an endpoint on this node, which may be the source and the destination of
// a flow.
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
			family: f, names: familyOf(f),
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

// setNode updates the addresses that accept NodePorts, and how the node's pods are
// recognized.
func (r *Renderer) setNode(n model.Node) {
	r.node = n
	for f, t := range r.tables {
		t.nodePort = model.NodePortAddressesOf(r.cfg.NodePortAddresses, &n, model.Family(f))
		t.nodePortKeys = nil
		for _, p := range prefixes(t.nodePort.Prefixes, model.Family(f)) {
			t.nodePortKeys = append(t.nodePortKeys, prefixText(p))
		}
		t.pods = t.detect(&r.cfg, n.PodCIDRs[f])
	}
}

// Services returns the number of rendered Services.
func (r *Renderer) Services() int { return len(r.services) }

// Elements returns the number of filled slots.
func (r *Renderer) Elements() int { return r.elements }

// Work counts what updates have looked at: listeners, slots, endpoints that differ,
// chains, and keys of elements. Snapshots do not count. The work of an update does not
// depend on the size of the rest.
func (r *Renderer) Work() uint64 { return r.work }

// Idle reports whether there are chains or maps for Cleanup.
func (r *Renderer) Idle() bool {
	for _, t := range r.tables {
		if len(t.idleHooks)+len(t.idlePicks)+len(t.idleChains)+len(t.idleMaps) > 0 {
			return true
		}
	}
	return false
}

// counted counts uses, and remembers which keys came into use or went out of it since the
// last take.
type counted[K comparable] struct {
	uses map[K]int
	// before has whether a changed key was in use.
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

// take returns the keys that came into use and those that went out of it, sorted.
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
		// To clear a map, or to range over it, costs as much as it once held.
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
