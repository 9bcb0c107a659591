package render

import (
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/publish"
)

// Update renders changes. If the New of a policy is nil but pods have the policy, it is left out:
// the pods stay isolated.
//
// While Pending is true, call Update again without changes as soon as the patch is committed.
func (r *Renderer) Update(c model.Changes) publish.Update {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.compareWithPrevious()
	patches := r.update(&c, manyObjects)
	var out publish.Update
	p := &weftv1.Patch{Fragment: Fragment}
	for i := range patches {
		for _, e := range patches[i].elements {
			out.Added += len(e.GetAdd())
			out.Removed += len(e.GetRemove())
		}
		if m := patches[i].message(); m != nil {
			p.Tables = append(p.Tables, m)
		}
	}
	if len(p.Tables) > 0 {
		out.Patch = p
	} else {
		r.committed()
	}
	return out
}

// Load applies changes without a patch, for a caller of Snapshot.
func (r *Renderer) Load(c model.Changes) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.update(&c, math.MaxInt)
}

func (r *Renderer) update(c *model.Changes, most int) []patch {
	if c.Node != nil {
		r.node = *c.Node
	}
	now, affected := r.cfg.Now(), make(map[types.UID]struct{})
	for _, t := range r.tables {
		if c.Node != nil {
			t.setPodCIDRs(r.node.PodCIDRs)
		}
		t.recheck.expire(now)
		for i := range c.Sets {
			for id := range t.changeSet(&c.Sets[i]) {
				r.touch(id, affected)
			}
		}
	}
	r.changePolicies(c.Policies, affected)
	for i := range c.Pods {
		r.changePod(&c.Pods[i], affected)
	}
	for _, uid := range slices.Sorted(maps.Keys(affected)) {
		if pod := r.pods[uid]; pod != nil {
			r.renderPod(pod)
		}
	}
	patches := make([]patch, len(r.tables)+1) // the last one is for bridges
	patches[len(r.tables)].family = "bridge"
	r.bridge.flush(&patches[len(r.tables)])
	for i, t := range r.tables {
		patches[i].family = t.table
		t.narrow(c.Narrowed, now.Add(r.cfg.RecheckFor))
		t.flush(&patches[i], most)
		if len(t.classes) > 0 {
			t.classes = make(map[string]*object)
		}
	}
	return patches
}

// narrow waits for compareWithPrevious after a restart, when all pods are new to the model.
func (t *table) narrow(all []netip.Addr, until time.Time) {
	for _, a := range all {
		switch {
		case !t.has(a):
		case t.previous != nil:
			t.previous.narrowed = append(t.previous.narrowed, a)
		default:
			t.recheck.add(a, until)
			t.work++
		}
	}
}

func (r *Renderer) changePolicies(all []model.PolicyChange, affected map[types.UID]struct{}) {
	for _, c := range all {
		var id model.PolicyID
		switch {
		case c.New != nil:
			id = c.New.ID
			r.forgetWaiting(id)
			r.policies[id] = c.New
		case c.Old != nil:
			id = c.Old.ID
			r.forgetWaiting(id)
			delete(r.policies, id)
		default:
			continue
		}
		r.touch(id, affected)
	}
}

func (r *Renderer) forgetWaiting(id model.PolicyID) {
	p := r.policies[id]
	if p == nil {
		return
	}
	for _, rule := range slices.Concat(p.Rules[:]...) {
		for _, set := range slices.Concat(rule.Pods, rule.NamedPorts) {
			for _, t := range r.tables {
				if o := t.sets[set]; o != nil {
					delete(o.members.waiting, id)
				}
			}
		}
	}
}

// touch adds the pods of the policy to affected.
func (r *Renderer) touch(id model.PolicyID, affected map[types.UID]struct{}) {
	for _, t := range r.tables {
		for d := range numLookups {
			delete(t.policyChains, policyLookup{id, d})
			delete(t.refused, policyLookup{id, d})
		}
	}
	for uid := range r.users[id] {
		affected[uid] = struct{}{}
	}
	r.work++
}

func (r *Renderer) changePod(c *model.PodChange, affected map[types.UID]struct{}) {
	pod := c.New
	if pod == nil {
		pod = c.Old
	}
	uid := pod.UID
	if old := r.pods[uid]; old != nil {
		for _, ids := range old.Policies {
			for _, id := range ids {
				if delete(r.users[id], uid); len(r.users[id]) == 0 {
					delete(r.users, id)
				}
			}
		}
		for _, t := range r.tables {
			t.removePod(old, c.New)
		}
	}
	r.work++
	r.bridge.set(uid, nil)
	if c.New == nil {
		delete(r.pods, uid)
		return
	}
	r.pods[uid] = c.New
	affected[uid] = struct{}{}
	for _, ids := range c.New.Policies {
		for _, id := range ids {
			if r.users[id] == nil {
				r.users[id] = make(map[types.UID]struct{})
			}
			r.users[id][uid] = struct{}{}
		}
	}
}

func (t *table) removePod(old, now *model.Pod) {
	keep := t.ends(now)
	for _, e := range t.ends(old) {
		if t.owners[e] != old.UID || slices.Contains(keep, e) {
			continue
		}
		delete(t.owners, e)
		for d := range e.lookups() {
			t.want(d, e, nil, "")
		}
	}
}

func (r *Renderer) renderPod(pod *model.Pod) {
	name := comment(pod.Name.String())
	for _, t := range r.tables {
		for _, e := range t.ends(pod) {
			t.owners[e] = pod.UID
			for d := range e.lookups() {
				t.want(d, e, t.classChain(pod.Policies[d.direction()], d, false), name)
			}
		}
	}
	r.bridge.set(pod.UID, pod)
}

// A nil chain removes the element.
func (t *table) want(d lookup, at end, chain *object, pod string) {
	t.work++
	t.unsentPods[at] = struct{}{}
	e := t.entries[d][at]
	if e == nil {
		if chain == nil {
			return
		}
		e = &entry{}
		t.entries[d][at] = e
	}
	if chain != nil {
		t.use(chain)
	}
	if e.wanted != nil {
		t.release(e.wanted)
	}
	e.wanted, e.pod = chain, pod
}

// changeSet returns the policies with new rules when the set gets its first members.
func (t *table) changeSet(c *model.SetChange) map[model.PolicyID]struct{} {
	if c.New == nil {
		if o := t.sets[c.Old.ID]; o != nil {
			o.members.remove()
			if !o.declared && o.uses == 0 {
				t.forgetSet(o)
			}
		}
		return nil
	}
	o := t.sets[c.New.ID]
	switch {
	case o == nil:
		o = t.newSet(c.New)
	case c.Old == nil && o.members.gone:
		o.members.restore()
	}
	added, removed := t.ofTable(c.Added), t.ofTable(c.Removed)
	o.members.change(added, removed)
	t.work += uint64(len(added) + len(removed))
	if o.uses > 0 {
		t.unsent[o] = struct{}{}
	}
	if o.members.filled || len(added) == 0 {
		return nil
	}
	waiting := o.members.waiting
	o.members.filled, o.members.waiting = true, nil
	return waiting
}

// A set is declared when a chain names it.
func (t *table) newSet(s *model.Set) *object {
	prefix, kind := "sel", t.address
	if s.Ports {
		prefix, kind = "port", kind+namedPortType
	}
	o := t.intern(identify(prefix, string(s.ID)), prefix, "", func(name string) *object {
		return &object{members: &members{
			id: s.ID, ports: s.Ports, state: make(map[model.Member]memberState), previous: t.previous.keys(name), waiting: make(map[model.PolicyID]struct{}),
			declaration: &weftv1.Set{Name: name, Type: kind, Comment: comment(s.Comment)},
		}}
	})
	t.sets[s.ID] = o
	return o
}

// The kernel must not have the object.
func (t *table) forgetUnused(o *object) {
	if o.members != nil && o.members.gone {
		t.forgetSet(o)
	} else {
		t.forget(o)
	}
}

// The kernel and the model must not have the set.
func (t *table) forgetSet(o *object) {
	t.forget(o)
	if t.sets[o.members.id] == o {
		delete(t.sets, o.members.id)
	}
}

// The members of a family are adjacent in sorted members.
func (f *family) ofTable(all []model.Member) []model.Member {
	from, _ := slices.BinarySearchFunc(all, 128, func(m model.Member, bits int) int { return m.Addr.BitLen() - bits })
	if f.bits == 128 {
		return all[from:]
	}
	return all[:from]
}

// A Node without PodCIDRs keeps the earlier ones.
func (t *table) setPodCIDRs(all []netip.Prefix) {
	if t.cfg.Start != StartDeny {
		return
	}
	var ranges []model.Range
	for _, p := range all {
		if t.has(p.Addr()) {
			ranges = append(ranges, model.RangeOf(p.Masked()))
		}
	}
	if len(all) == 0 {
		return
	}
	t.cidrs, t.wantedCIDRs = model.MergeRanges(ranges), nil
	for _, r := range t.cidrs {
		t.wantedCIDRs = append(t.wantedCIDRs, rangeText(r))
	}
}

// flush adds the differences from the kernel to p. most limits the size of the declared objects.
func (t *table) flush(p *patch, most int) {
	t.declareFresh(p, most)
	t.flushMembers(p)
	t.flushPods(p)
	t.flushPodCIDRs(p)
	add, remove := t.recheck.flush()
	for _, a := range remove {
		p.remove(setRecheck, a.String())
	}
	for _, a := range add {
		p.add(setRecheck, &weftv1.Element{Key: a.String()})
	}
	t.work += t.hooks.flush(p, t.family, t.hookReason())
}

func (t *table) flushMembers(p *patch) {
	sets := slices.SortedFunc(maps.Keys(t.unsent), func(a, b *object) int { return strings.Compare(a.name, b.name) })
	for _, o := range sets {
		if !o.declared {
			continue
		}
		add, remove := o.members.flush()
		for _, m := range remove {
			p.remove(o.name, o.members.key(m))
		}
		for _, m := range add {
			p.add(o.name, &weftv1.Element{Key: o.members.key(m)})
		}
		t.work += uint64(len(add) + len(remove))
		if len(o.members.changed) == 0 || o.members.gone {
			delete(t.unsent, o)
		}
	}
}

// A pod keeps its chain until the sets of the new chain are full; without a chain, it gets the new
// one at once, or an isolating one while that is undeclared.
func (t *table) flushPods(p *patch) {
	if len(t.unsentPods) == 0 {
		return
	}
	ends := slices.SortedFunc(maps.Keys(t.unsentPods), compareEnds)
	t.unsentPods = make(map[end]struct{})
	for _, e := range ends {
		for d := range numLookups {
			if !t.flushEntry(p, d, e) {
				t.unsentPods[e] = struct{}{}
			}
		}
		key := e.key()
		wanted := t.entries[ingress][e] != nil || t.entries[egress][e] != nil
		if e.link != "" {
			toggle(p, t.linked, e, wanted, setLinks, key)
			setMember(t.linked, e, wanted)
			continue
		}
		toggle(p, t.selected, e, wanted, setSelf, key+separator+key)
		toggle(p, t.selected, e, wanted, setSelected, key)
		setMember(t.selected, e, wanted)
		if t.cfg.Start == StartDeny {
			_, wanted := t.owners[e]
			toggle(p, t.present, e, wanted, setKnown, key)
			setMember(t.present, e, wanted)
		}
	}
}

func toggle(p *patch, inKernel map[end]struct{}, e end, wanted bool, set, key string) {
	switch _, has := inKernel[e]; {
	case wanted && !has:
		p.add(set, &weftv1.Element{Key: key})
	case has && !wanted:
		p.remove(set, key)
	}
}

func setMember(of map[end]struct{}, e end, member bool) {
	if member {
		of[e] = struct{}{}
	} else {
		delete(of, e)
	}
}

// flushEntry reports whether the element is as wanted.
func (t *table) flushEntry(p *patch, d lookup, at end) bool {
	e := t.entries[d][at]
	switch {
	case e == nil:
		return true
	case e.wanted == nil:
		if e.sent != nil {
			p.remove(at.chains(d), at.key())
			t.release(e.sent)
		}
		delete(t.entries[d], at)
		return true
	case e.wanted == e.sent && e.pod == e.sentPod:
		return e.wanted.full()
	case e.sent != nil && e.sent != e.wanted && !e.wanted.full():
		return false
	}
	next := e.wanted
	if !next.declared {
		next = t.classChain(t.pods[t.owners[at]].Policies[d.direction()], d, true)
		most := math.MaxInt
		t.declare(p, next, &most)
	}
	p.add(at.chains(d), &weftv1.Element{Key: at.key(), Value: "goto " + next.name, Comment: e.pod})
	t.use(next)
	if e.sent != nil {
		t.release(e.sent)
	}
	e.sent, e.sentPod = next, e.pod
	return next == e.wanted && next.full()
}

func (t *table) flushPodCIDRs(p *patch) {
	for _, k := range t.podCIDRs {
		if !slices.Contains(t.wantedCIDRs, k) {
			p.remove(setPodCIDRs, k)
		}
	}
	for _, k := range t.wantedCIDRs {
		if !slices.Contains(t.podCIDRs, k) {
			p.add(setPodCIDRs, &weftv1.Element{Key: k})
		}
	}
	t.podCIDRs = t.wantedCIDRs
}
