package render

import (
	"cmp"
	"fmt"
	"net/netip"
	"sync"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// Renderer holds the rendered state.
type Renderer struct {
	cfg Config

	mu       sync.Mutex
	tables   tablesByFamily
	services map[model.Key]*rendered
	none     *rendered
	node     model.Node
	owners   owners
	leftOut  map[model.Key]error
	elements int
	work     uint64
}

type table struct {
	family model.Family
	names  family
	// A running frontend never removes a table.
	on     bool
	frozen frozen

	nodePort     model.NodePortAddresses
	nodePortKeys []string
	pods         detection
	serviceCIDRs []string

	clusterIPs   uses[netip.Addr]
	hairpins     uses[hairpinKey]
	picks        onDemand[verdict]
	hooks        onDemand[role]
	affinityMaps int
	sources      uses[sources]
	limited      uses[limited]
	loopback     model.LoopbackMode
	rejected     uses[listenerKey]
	// unused, empty
	idleChains map[string]struct{}
	previous   map[listenerKey]*previousSlots
}

// A hairpinKey's endpoint may be both source and destination of a flow.
type hairpinKey struct {
	addr     netip.AddrPort
	protocol model.Protocol
}

func (h hairpinKey) compare(o hairpinKey) int {
	return cmp.Or(h.addr.Compare(o.addr), cmp.Compare(h.protocol, o.protocol))
}

type tablesByFamily [model.NumFamilies]*table

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
			loopback: cfg.Loopback[f], rejected: newUses(listenerKey.compare),
			idleChains: make(map[string]struct{}),
		}
		t.on = cfg.Families[f] && (f == model.IPv4 || len(prefixes(cfg.Detect.CIDRs, f)) > 0)
		r.tables[f] = t
	}
	r.setNode(model.Node{})
	return r, nil
}

func (r *Renderer) setNode(n model.Node) {
	r.node = n
	for f, t := range r.tables {
		t.nodePort = r.cfg.NodePortAddresses.Of(&n, model.Family(f))
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

// named returns nil for a table of another program.
func (ts *tablesByFamily) named(family, name string) *table {
	for _, t := range ts {
		if t.names.table == family && name == Table {
			return t
		}
	}
	return nil
}

// Work counts the objects that updates visited: listeners, slots, differing endpoints, chains and element
// keys. Snapshots do not count.
func (r *Renderer) Work() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.work
}

// Idle implements publish.Cleaner.
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
