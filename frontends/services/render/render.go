package render

import (
	"cmp"
	"fmt"
	"net/netip"
	"sync"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// Renderer holds what is rendered: the slot of each endpoint, and the number of uses of
// shared objects.
type Renderer struct {
	cfg Config

	mu       sync.Mutex
	tables   [model.NumFamilies]*table
	services map[model.Key]*rendered
	// none is a Service without listeners, in place of one that does not exist.
	none   *rendered
	node   model.Node
	owners owners
	// leftOut are the Services that are not rendered because they are too large, and why.
	leftOut map[model.Key]error
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

	clusterIPs uses[netip.Addr]
	hairpins   uses[hairpinKey]
	// picks are the chains that pick an endpoint, hooks the roles whose chains on hooks
	// are in use.
	picks onDemand[verdict]
	hooks onDemand[role]
	// affinityMaps is the number of maps of session affinity.
	affinityMaps int
	// sources and limited are the chains of source ranges.
	sources uses[sources]
	limited uses[limited]
	// idleChains are the names of chains of source ranges and session affinity without a use, which
	// are empty.
	idleChains map[string]struct{}
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

// appendTo writes the key of an element: the endpoint as source and destination.
func (h hairpinKey) appendTo(b []byte) []byte {
	b = append(h.addr.Addr().AppendTo(b), separator...)
	return listenerKey{addr: h.addr.Addr(), port: h.addr.Port(), protocol: h.protocol}.append(b)
}

// New returns a renderer of an empty model.
func New(cfg Config) (*Renderer, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("configure rendering: %w", err)
	}
	r := &Renderer{cfg: cfg, services: make(map[model.Key]*rendered), none: &rendered{service: &model.Service{}}, owners: newOwners(), leftOut: make(map[model.Key]error)}
	for f := range model.NumFamilies {
		t := &table{
			family: f, names: families[f],
			clusterIPs: newUses(netip.Addr.Compare), hairpins: newUses(hairpinKey.compare),
			picks: newOnDemand(verdict.compare), hooks: newOnDemand(cmp.Compare[role]),
			sources: newUses(cmp.Compare[sources]), limited: newUses(limited.compare),
			idleChains: make(map[string]struct{}),
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
		t.nodePortKeys = prefixTexts(t.nodePort.Prefixes, t.family)
		t.pods = t.detect(&r.cfg, n.PodCIDRs[f])
	}
}

// Services returns the number of rendered Services.
func (r *Renderer) Services() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.services)
}

// Elements returns the number of filled slots.
func (r *Renderer) Elements() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.elements
}

// table returns the table with a family and a name in nftables, nil if there is none.
func (r *Renderer) table(family, name string) *table {
	for _, t := range r.tables {
		if t.names.table == family && name == Table {
			return t
		}
	}
	return nil
}

// Work counts what updates have looked at: listeners, slots, endpoints that differ,
// chains, and keys of elements. Snapshots do not count. The work of an update does not
// depend on the size of the rest.
func (r *Renderer) Work() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.work
}

// Idle reports whether there are chains for Cleanup.
func (r *Renderer) Idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tables {
		if len(t.hooks.idle)+len(t.picks.idle)+len(t.idleChains) > 0 {
			return true
		}
	}
	return false
}
