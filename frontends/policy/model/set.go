package model

import (
	"cmp"
	"net/netip"
	"slices"
)

// A selection has pods, or named ports of pods.
type selection struct {
	// For shared addresses: see Model.membersAt.
	action     Action
	local      bool
	namespace  string // of the pods, if namespaces is nil
	namespaces *selector
	pods       *selector
	// empty for members that are addresses
	port string
	// 0 means any.
	protocol Protocol
}

// text is canonical, such as "shop: app=api" or "port http/tcp of {team=a}: app=api".
func (s *selection) text() string {
	where := word(s.namespace)
	if s.namespaces != nil {
		where = "{" + s.namespaces.text + "}"
	}
	out := where + ": " + s.pods.text
	if s.pods.text == "" {
		out = where
	}
	if s.port != "" {
		protocol := "any"
		if s.protocol != 0 {
			protocol = s.protocol.String()
		}
		out = "port " + word(s.port) + "/" + protocol + " of " + out
	}
	if s.local {
		out += " on this node"
	}
	return out + [...]string{Accept: "", Deny: " to deny", Pass: " to pass"}[s.action]
}

// matchesNamespace does not let a rule accept by the absence of a label while the labels are
// unknown.
func (s *selection) matchesNamespace(n *namespace) bool {
	if s.namespaces == nil {
		return n.name == s.namespace
	}
	return s.namespaces.matches(n.labels) && (n.known || s.action == Deny || !s.namespaces.negative())
}

func (s *selection) matches(p *pod) bool {
	return (p.local || !s.local) && s.matchesNamespace(p.namespace) && s.pods.matches(p.labels.values)
}

type set struct {
	selection
	public   *Set
	users    int // active policies
	reported bool
	// Since the last Refresh: added (true) or removed.
	delta map[Member]bool
	size  int
	// initial has the members until the set is reported; filling is true during their search.
	initial []Member
	filling bool
	visit   uint64
	touched bool
}

func (s *set) note(member Member, added bool) {
	if was, ok := s.delta[member]; ok && was != added {
		delete(s.delta, member)
		return
	}
	if s.delta == nil {
		s.delta = make(map[Member]bool)
	}
	s.delta[member] = added
}

func (s *set) appendMembers(out []Member, p *pod, a netip.Addr) []Member {
	if s.port == "" {
		return append(out, Member{Addr: a})
	}
	for i := range p.ports.values {
		if q := &p.ports.values[i]; q.name == s.port && (s.protocol == 0 || s.protocol == q.protocol) {
			out = append(out, Member{Addr: a, Protocol: q.protocol, Port: q.port})
		}
	}
	return out
}

// membersAt returns a buffer that the next call reuses. A member counts if all claimants contribute
// it, or for a denying rule, if one does.
func (m *Model) membersAt(s *set, a netip.Addr, claimants []*pod) []Member {
	out := m.members[:0]
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
	m.members = out
	return out
}

func (m *Model) allMembers(s *set) []Member {
	var out []Member
	switch {
	case s.local:
		for _, p := range m.locals {
			if s.matches(p) {
				out = m.appendPod(out, s, p)
			}
		}
	case s.namespaces == nil:
		out = m.appendNamespace(out, s, m.namespaces[s.namespace])
	default:
		for _, n := range m.namespaces {
			out = m.appendNamespace(out, s, n)
		}
	}
	return sortMembers(out)
}

// From this number of new cluster sets, a single walk over all pods fills all sets.
const fillTogether = 8

func (m *Model) fill(sets []*set) {
	var wide []*set
	for _, s := range sets {
		if s.namespaces == nil {
			s.initial = m.allMembers(s)
		} else {
			wide = append(wide, s)
		}
	}
	if len(wide) < fillTogether {
		for _, s := range wide {
			s.initial = m.allMembers(s)
		}
		return
	}
	for _, s := range wide {
		s.filling = true
	}
	for _, n := range m.namespaces {
		for _, p := range n.pods {
			m.clusterSets.each(n.labels, p.labels.values, func(s *set) {
				if s.filling && s.matches(p) {
					s.initial = m.appendPod(s.initial, s, p)
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

func (m *Model) appendNamespace(out []Member, s *set, n *namespace) []Member {
	if n == nil || !s.matchesNamespace(n) {
		return out
	}
	if l, ok := s.pods.required(); ok && s.namespaces == nil {
		for p := range n.podsWith(l) {
			if s.pods.matches(p.labels.values) {
				out = m.appendPod(out, s, p)
			}
		}
		return out
	}
	for _, p := range n.pods {
		if s.pods.matches(p.labels.values) {
			out = m.appendPod(out, s, p)
		}
	}
	return out
}

func (m *Model) appendPod(out []Member, s *set, p *pod) []Member {
	for _, a := range p.addresses() {
		if several := m.claims.several[a]; several != nil {
			out = append(out, m.membersAt(s, a, several)...)
		} else {
			out = s.appendMembers(out, p, a)
		}
	}
	return out
}

func CompareMembers(a, b Member) int {
	return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port))
}

func (m *Model) useSet(id SetID, sel *selection) *set {
	s := m.sets[id]
	if s == nil {
		s = &set{selection: *sel, public: &Set{ID: id, Ports: sel.port != "", Comment: string(id)}}
		m.sets[id] = s
		n := m.namespace(s.namespace)
		in, by := m.clusterSets.of(s.namespaces, s.pods, &n.sets)
		in.add(by, s)
		m.forgetNamespace(n)
	}
	s.users++
	m.dirtySets[s] = struct{}{}
	return s
}

func (m *Model) removeSet(s *set) {
	delete(m.sets, s.public.ID)
	n := m.namespace(s.namespace)
	in, by := m.clusterSets.of(s.namespaces, s.pods, &n.sets)
	in.remove(by, s)
	m.forgetNamespace(n)
}
