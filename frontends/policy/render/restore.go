package render

import (
	"math"
	"net/netip"
	"strings"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/policy/model"
)

type previous struct {
	sets     map[string]map[string]struct{}    // keys by set
	chains   [numLookups]map[netip.Addr]string // verdicts of pods
	narrowed []netip.Addr                      // reported by the model since then
}

func (p *previous) keys(set string) map[string]struct{} {
	if p == nil {
		return nil
	}
	return p.sets[set]
}

func (p *previous) same(t *table, a netip.Addr) bool {
	if p == nil {
		return false
	}
	for d := range numLookups {
		now := ""
		if e := t.entries[d][at(a)]; e != nil && e.wanted != nil {
			now = e.wanted.name
		}
		if p.chains[d][a] != now {
			return false
		}
	}
	return t.owners[at(a)] != ""
}

// Restore adopts the fragment of an earlier process, and rechecks pods with changed policies and
// addresses that left a set. Call Restore before the first Load, and Load and Snapshot before the
// first Update.
func (r *Renderer) Restore(f *weftv1.Fragment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	until := r.cfg.Now().Add(r.cfg.RecheckFor)
	for _, of := range f.GetTables() {
		if t := r.table(of.GetFamily(), of.GetName()); t != nil {
			t.restore(of, until)
		}
	}
}

func (t *table) restore(of *weftv1.Table, until time.Time) {
	t.left = newLeftovers(of)
	t.previous = &previous{sets: make(map[string]map[string]struct{})}
	for _, s := range of.GetSets() {
		if s.GetName() == setPodCIDRs && t.cfg.Start == StartDeny {
			for _, e := range s.GetElements() {
				t.keepPodCIDR(e.GetKey())
			}
		}
		if s.GetName() == setRecheck {
			for _, e := range s.GetElements() {
				t.recheck.addKey(t.family, e.GetKey(), until)
			}
			continue
		}
		if !strings.HasPrefix(s.GetName(), "sel-") && !strings.HasPrefix(s.GetName(), "port-") {
			// The set has no pods.
			continue
		}
		// A large set comes in several parts.
		keys := t.previous.sets[s.GetName()]
		if keys == nil {
			keys = make(map[string]struct{}, len(s.GetElements()))
		}
		for _, e := range s.GetElements() {
			keys[e.GetKey()] = struct{}{}
		}
		t.previous.sets[s.GetName()] = keys
	}
	for _, m := range of.GetMaps() {
		for d, name := range mapNames {
			if m.GetName() != name {
				continue
			}
			if t.previous.chains[d] == nil {
				t.previous.chains[d] = make(map[netip.Addr]string, len(m.GetElements()))
			}
			t.had.Pods = t.had.Pods || len(m.GetElements()) > 0
			for _, e := range m.GetElements() {
				if a, err := netip.ParseAddr(e.GetKey()); err == nil {
					t.previous.chains[d][a] = strings.TrimPrefix(e.GetValue(), "goto ")
				}
			}
		}
	}
	for _, c := range of.GetChains() {
		for _, prefix := range tierPrefixes {
			t.had.ClusterPolicies = t.had.ClusterPolicies || strings.HasPrefix(c.GetName(), prefix+"-")
		}
		// The earlier process may have rechecked all connections.
		if c.GetName() == chainForward && len(c.GetRules()) > 0 && c.GetRules()[0].GetText() == relatedOnly {
			t.recheck.all = &deadline{until: until}
			t.recheck.next = until
		}
	}
}

// Had reports pods with policies, and ClusterNetworkPolicies, in the earlier fragment.
type Had struct {
	Pods, ClusterPolicies bool
}

// Had describes the fragment of the earlier process; zero if missing.
func (r *Renderer) Had() (out Had) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tables {
		out.Pods, out.ClusterPolicies = out.Pods || t.had.Pods, out.ClusterPolicies || t.had.ClusterPolicies
	}
	return out
}

// keepPodCIDR keeps an earlier range until the Node object replaces it.
func (t *table) keepPodCIDR(key string) {
	first, last, ok := strings.Cut(key, "-")
	var r model.Range
	p, err := netip.ParsePrefix(first)
	if err == nil {
		r = model.RangeOf(p)
	} else if r.First, err = netip.ParseAddr(first); err == nil {
		if r.Last = r.First; ok {
			r.Last, err = netip.ParseAddr(last)
		}
	}
	if err == nil {
		t.cidrs, t.wantedCIDRs = append(t.cidrs, r), append(t.wantedCIDRs, key)
	}
}

func (r *recheck) addKey(f *family, key string, until time.Time) {
	text, _, _ := strings.Cut(key, separator)
	if a, err := netip.ParseAddr(text); err == nil && f.has(a) {
		r.add(a, until)
	}
}

func (r *Renderer) compareWithPrevious() {
	for _, t := range r.tables {
		if t.previous != nil {
			t.compareWithPrevious(r.cfg.Now().Add(r.cfg.RecheckFor))
			// The present snapshot has the differences.
			t.flush(&patch{}, math.MaxInt)
		}
	}
}

// compareWithPrevious rechecks changes while no process ran.
func (t *table) compareWithPrevious(until time.Time) {
	for _, a := range t.previous.narrowed {
		if !t.previous.same(t, a) {
			t.recheck.add(a, until)
		}
	}
	for d := range numLookups {
		for e := range t.entries[d] {
			if e.link == "" && !t.previous.same(t, e.addr) {
				t.recheck.add(e.addr, until)
			}
		}
	}
	for _, o := range t.sets {
		had := t.previous.sets[o.name]
		now := make(map[string]struct{}, len(o.members.state))
		for k := range o.members.state {
			key := o.members.key(k)
			now[key] = struct{}{}
			if _, ok := had[key]; !ok && o.members.denied {
				t.recheck.add(k.Addr, until)
			}
		}
		for key := range had {
			if _, ok := now[key]; !ok {
				t.recheck.addKey(t.family, key, until)
			}
		}
	}
	t.previous = nil
	for _, o := range t.sets {
		o.members.previous = nil
	}
}
