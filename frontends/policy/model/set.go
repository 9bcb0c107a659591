package model

import (
	"cmp"
	"net/netip"
)

// A selection has pods, or named ports of pods.
type selection struct {
	// For shared addresses: see sets.membersAt.
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
	// visit is the last walk that saw the set: see sets.visit. relabel sets touched.
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

// CompareMembers orders members by address, protocol and port.
func CompareMembers(a, b Member) int {
	return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port))
}
