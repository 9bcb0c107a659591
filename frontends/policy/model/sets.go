package model

import (
	"net/netip"
	"slices"
	"strings"
)

// sets has the sets that active policies name.
type sets struct {
	*cluster
	byID map[SetID]*set
	// wide are the sets with pods of several namespaces; the others are in namespace.sets.
	wide      clusterIndex[*set]
	dirtySets map[*set]struct{} // since the last refresh
	// visit counts the walks over sets; each sees a set once.
	visit   uint64
	buffer  []Member
	members int
}

// relabel visits only the sets that gain or lose the namespace, and its pods.
func (x *sets) relabel(n *namespace, labels []label, known bool) {
	now := &namespace{name: n.name, labels: labels, known: known}
	var affected []*set
	for _, s := range x.byID {
		if s.namespaces != nil && s.matchesNamespace(n) != s.matchesNamespace(now) {
			s.touched = true
			affected = append(affected, s)
		}
	}
	touched := func(s *set) bool { return s.touched }
	var shared map[netip.Addr]struct{}
	if len(affected) > 0 {
		shared = x.sharedAddresses(n)
	}
	for a := range shared {
		x.note(a, false, touched)
	}
	n.labels, n.known = labels, known
	for a := range shared {
		x.note(a, true, touched)
	}
	for _, s := range affected {
		s.touched = false
		x.noteNamespace(s, n)
	}
	for _, p := range n.pods {
		if p.local {
			x.touchPod(p)
		}
	}
}

func (x *sets) noteNamespace(s *set, n *namespace) {
	gained := s.matchesNamespace(n)
	for _, p := range n.pods {
		if s.local && !p.local || !s.pods.matches(p.labels.values) {
			continue
		}
		for _, a := range p.addresses() {
			if x.claims.several[a] != nil {
				continue
			}
			x.buffer = s.appendMembers(x.buffer[:0], p, a)
			for _, member := range x.buffer {
				s.note(member, gained)
				x.dirtySets[s] = struct{}{}
			}
		}
	}
}

// note records the members at an address as added or removed. A nil only means all sets.
func (x *sets) note(a netip.Addr, added bool, only func(*set) bool) {
	claimants := x.claims.at(a)
	x.visit++
	for _, p := range claimants {
		x.of(p, func(s *set) {
			if s.visit == x.visit || only != nil && !only(s) {
				return
			}
			s.visit = x.visit
			members := x.membersAt(s, a, claimants)
			for _, member := range members {
				s.note(member, added)
			}
			if len(members) > 0 {
				x.dirtySets[s] = struct{}{}
			}
		})
	}
}

func (x *sets) of(p *pod, f func(*set)) {
	p.namespace.sets.each(p.labels.values, f)
	x.wide.each(p.namespace.labels, p.labels.values, f)
}

// membersAt returns a buffer that the next call reuses. A member counts if all claimants contribute
// it, or for a denying rule, if one does.
func (x *sets) membersAt(s *set, a netip.Addr, claimants []*pod) []Member {
	out := x.buffer[:0]
	if s.matches(claimants[0]) {
		out = s.appendMembers(out, claimants[0], a)
	}
	for _, p := range claimants[1:] {
		n := len(out)
		if s.matches(p) {
			out = s.appendMembers(out, p, a)
		}
		other := out[n:]
		if s.action == Deny {
			for _, o := range other {
				if !slices.Contains(out[:n], o) {
					out[n] = o
					n++
				}
			}
			out = out[:n]
			continue
		}
		kept := out[:0]
		for _, o := range out[:n] {
			if slices.Contains(other, o) {
				kept = append(kept, o)
			}
		}
		out = kept
	}
	x.buffer = out
	return out
}

func (x *sets) all(s *set) []Member {
	var out []Member
	switch {
	case s.local:
		for _, p := range x.locals {
			if s.matches(p) {
				out = x.appendPod(out, s, p)
			}
		}
	case s.namespaces == nil:
		out = x.appendNamespace(out, s, x.namespaces[s.namespace])
	default:
		for _, n := range x.namespaces {
			out = x.appendNamespace(out, s, n)
		}
	}
	return sortMembers(out)
}

// From this number of new cluster sets, a single walk over all pods fills all sets.
const fillTogether = 8

func (x *sets) fill(sets []*set) {
	var wide []*set
	for _, s := range sets {
		if s.namespaces == nil {
			s.initial = x.all(s)
		} else {
			wide = append(wide, s)
		}
	}
	if len(wide) < fillTogether {
		for _, s := range wide {
			s.initial = x.all(s)
		}
		return
	}
	for _, s := range wide {
		s.filling = true
	}
	for _, n := range x.namespaces {
		for _, p := range n.pods {
			x.wide.each(n.labels, p.labels.values, func(s *set) {
				if s.filling && s.matches(p) {
					s.initial = x.appendPod(s.initial, s, p)
				}
			})
		}
	}
	for _, s := range wide {
		s.filling = false
		s.initial = sortMembers(s.initial)
	}
}

func sortMembers(in []Member) []Member {
	slices.SortFunc(in, CompareMembers)
	return slices.Clip(slices.Compact(in))
}

func (x *sets) appendNamespace(out []Member, s *set, n *namespace) []Member {
	if n == nil || !s.matchesNamespace(n) {
		return out
	}
	if l, ok := s.pods.required(); ok && s.namespaces == nil {
		for p := range n.podsWith(l) {
			if s.pods.matches(p.labels.values) {
				out = x.appendPod(out, s, p)
			}
		}
		return out
	}
	for _, p := range n.pods {
		if s.pods.matches(p.labels.values) {
			out = x.appendPod(out, s, p)
		}
	}
	return out
}

func (x *sets) appendPod(out []Member, s *set, p *pod) []Member {
	for _, a := range p.addresses() {
		if several := x.claims.several[a]; several != nil {
			out = append(out, x.membersAt(s, a, several)...)
		} else {
			out = s.appendMembers(out, p, a)
		}
	}
	return out
}

func (x *sets) use(id SetID, sel *selection) *set {
	s := x.byID[id]
	if s == nil {
		s = &set{selection: *sel, public: &Set{ID: id, Ports: sel.port != "", Comment: string(id)}}
		x.byID[id] = s
		n := x.namespace(s.namespace)
		in, by := x.wide.of(s.namespaces, s.pods, &n.sets)
		in.add(by, s)
		x.forgetNamespace(n)
	}
	s.users++
	x.dirtySets[s] = struct{}{}
	return s
}

func (x *sets) remove(s *set) {
	delete(x.byID, s.public.ID)
	n := x.namespace(s.namespace)
	in, by := x.wide.of(s.namespaces, s.pods, &n.sets)
	in.remove(by, s)
	x.forgetNamespace(n)
}

// release removes users of sets. Refresh removes unused sets at its end.
func (x *sets) release(sets []*set) {
	for _, s := range sets {
		s.users--
		x.dirtySets[s] = struct{}{}
	}
}

func (x *sets) refresh(narrowed narrowings) (out []SetChange) {
	var added []*set
	for s := range x.dirtySets {
		if s.users > 0 && !s.reported {
			added = append(added, s)
		}
	}
	x.fill(added)
	for s := range x.dirtySets {
		c := SetChange{New: s.public}
		switch {
		case s.users == 0:
			x.remove(s)
			c = SetChange{Old: s.public}
			x.members -= s.size
			s.size = 0
			if !s.reported {
				continue
			}
		case !s.reported:
			c.Added, s.initial = s.initial, nil
			s.reported = true
		default:
			c.Old = s.public
			for member, added := range s.delta {
				if added {
					c.Added = append(c.Added, member)
				} else {
					c.Removed = append(c.Removed, member)
				}
			}
			slices.SortFunc(c.Added, CompareMembers)
			slices.SortFunc(c.Removed, CompareMembers)
			narrowed.set(s, &c)
			if len(c.Added)+len(c.Removed) == 0 {
				continue
			}
		}
		s.delta = nil
		s.size += len(c.Added) - len(c.Removed)
		x.members += len(c.Added) - len(c.Removed)
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b SetChange) int { return strings.Compare(string(a.id()), string(b.id())) })
	if len(x.dirtySets) > 256 {
		x.dirtySets = make(map[*set]struct{})
	}
	clear(x.dirtySets)
	return out
}

func (c *SetChange) id() SetID {
	if c.New != nil {
		return c.New.ID
	}
	return c.Old.ID
}
