package model

import (
	"slices"
	"strings"
	"unique"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// topology says which ready endpoints the policy Cluster uses.
type topology uint8

const (
	anywhere topology = iota
	sameNode
	sameZone
)

// fits reports whether an endpoint is used.
func (t topology) fits(of traits) bool {
	switch t {
	case sameNode:
		return of&forThisNode != 0
	case sameZone:
		return of&forThisZone != 0
	default:
		return true
	}
}

// nodeHints returns what an endpoint's hints say of a node.
func nodeHints(h *discoveryv1.EndpointHints, node string) (t traits) {
	if len(h.ForNodes) == 0 {
		return 0
	}
	t = hintedNode
	if node != "" && slices.ContainsFunc(h.ForNodes, func(n discoveryv1.ForNode) bool { return n.Name == node }) {
		t |= forThisNode
	}
	return t
}

// zoneHints returns which of the slice's lists of zones an endpoint has, and
// adds its list if it is new. Endpoints share lists: they are as many as there
// are zones. seen has those so far, by their joined names.
func (s *slice) zoneHints(h *discoveryv1.EndpointHints, seen map[string]uint32) uint32 {
	if len(h.ForZones) == 0 {
		return 0
	}
	names := make([]string, len(h.ForZones))
	for i := range h.ForZones {
		names[i] = h.ForZones[i].Name
	}
	key := strings.Join(names, "\x00")
	if n := seen[key]; n != 0 {
		return n
	}
	list := make([]word, len(names))
	for i, n := range names {
		list[i] = unique.Make(n)
	}
	s.zones = append(s.zones, list)
	n := uint32(len(s.zones))
	seen[key] = n
	return n
}

// zoneTraits returns what each of a slice's lists of zones says of this node.
// Without a zone the node is in none (rule 73).
func (m *Model) zoneTraits(s *slice) []traits {
	if len(s.zones) == 0 {
		return nil
	}
	out := make([]traits, len(s.zones))
	for i, list := range s.zones {
		out[i] = hintedZone
		if m.this.Zone != "" && slices.ContainsFunc(list, func(z word) bool { return z.Value() == m.this.Zone }) {
			out[i] |= forThisZone
		}
	}
	return out
}
