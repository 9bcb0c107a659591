package render

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/policy/model"
)

// Renderer holds the rendered state.
type Renderer struct {
	cfg Config

	mu       sync.Mutex
	tables   []*table
	bridge   bridge
	pods     map[types.UID]*model.Pod
	users    map[model.PolicyID]map[types.UID]struct{}
	policies map[model.PolicyID]*model.Policy
	node     model.Node
	work     uint64
}

type table struct {
	objects
	hooks
	*family
	cfg      *Config
	policies map[model.PolicyID]*model.Policy // without policies that are left out
	pods     map[types.UID]*model.Pod

	sets map[model.SetID]*object
	// classes caches chains of lists of policies during an update.
	policyChains map[policyLookup]*object
	classes      map[string]*object
	refused      map[policyLookup]error // policies that are too large

	// A new pod gets an end before the old one loses it.
	owners map[end]types.UID
	// unsentPods are possible differences from the kernel.
	entries                   [numLookups]map[end]*entry
	unsentPods                map[end]struct{}
	selected, linked, present map[end]struct{} // of self and selected, of links, of known-pods
	// Present and wanted elements of pod-cidrs, and their ranges.
	podCIDRs, wantedCIDRs []string
	cidrs                 []model.Range
	recheck               recheck
	previous              *previous
	had                   Had
	left                  leftovers // of an earlier process
	work                  uint64
}

type entry struct {
	// sent is in the kernel, and stays until the sets of wanted are full.
	wanted, sent *object
	pod, sentPod string
}

// New returns a renderer of an empty model.
func New(cfg Config) (*Renderer, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("configure rendering: %w", err)
	}
	r := &Renderer{
		cfg: cfg, pods: make(map[types.UID]*model.Pod), users: make(map[model.PolicyID]map[types.UID]struct{}),
		policies: make(map[model.PolicyID]*model.Policy), bridge: newBridge(),
	}
	for f := range families {
		if cfg.Families[f] {
			r.tables = append(r.tables, newTable(r, f))
		}
	}
	return r, nil
}

func newTable(r *Renderer, f int) *table {
	t := &table{
		objects: newObjects(), hooks: hooks{declared: make(map[string]*weftv1.Chain), idle: make(map[string]struct{})}, family: &families[f], cfg: &r.cfg, policies: r.policies, pods: r.pods,
		sets: make(map[model.SetID]*object), policyChains: make(map[policyLookup]*object), classes: make(map[string]*object),
		refused: make(map[policyLookup]error),
		owners:  make(map[end]types.UID), unsentPods: make(map[end]struct{}), selected: make(map[end]struct{}),
		linked: make(map[end]struct{}), present: make(map[end]struct{}), recheck: newRecheck(),
	}
	for d := range t.entries {
		t.entries[d] = make(map[end]*entry)
	}
	return t
}

func (f *family) has(a netip.Addr) bool { return a.BitLen() == f.bits }

func (r *Renderer) table(family, name string) *table {
	for _, t := range r.tables {
		if t.family.table == family && name == Table {
			return t
		}
	}
	return nil
}

// Work counts the rules, members, elements and objects visited by updates, not snapshots.
func (r *Renderer) Work() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.work
	for _, t := range r.tables {
		n += t.work
	}
	return n
}

// Pending reports whether another Update has something to send.
func (r *Renderer) Pending() bool {
	due := r.Due()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tables {
		if len(t.fresh)+len(t.unsent)+len(t.unsentPods)+len(t.recheck.changed) > 0 || t.hookReason() != t.reason {
			return true
		}
	}
	return !due.IsZero() && !r.cfg.Now().Before(due)
}

// Waits reports whether a pod of a policy waits for another Update.
func (r *Renderer) Waits(id model.PolicyID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for uid := range r.users[id] {
		if waits(r, uid) {
			return true
		}
	}
	return false
}

// WaitsPod reports whether a pod waits for another Update.
func (r *Renderer) WaitsPod(uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return waits(r, uid)
}

// waits needs the lock.
func waits(r *Renderer, uid types.UID) bool {
	for _, t := range r.tables {
		for _, e := range t.ends(r.pods[uid]) {
			if _, waits := t.unsentPods[e]; waits {
				return true
			}
		}
	}
	return false
}

// Due returns when a recheck ends and Pending becomes true; zero for never.
func (r *Renderer) Due() (due time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tables {
		if at := t.recheck.due(); !at.IsZero() && (due.IsZero() || at.Before(due)) {
			due = at
		}
	}
	return due
}
