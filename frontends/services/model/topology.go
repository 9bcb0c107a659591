package model

import (
	"slices"
	"strings"
	"unique"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// topology restricts the ready endpoints of the policy Cluster.
type topology uint8

const (
	anywhere topology = iota
	sameNode
	sameZone
)

func (t topology) fits(of flags) bool {
	switch t {
	case sameNode:
		return of&forThisNode != 0
	case sameZone:
		return of&forThisZone != 0
	default:
		return true
	}
}

func nodeHints(h *discoveryv1.EndpointHints, node string) (t flags) {
	if len(h.ForNodes) == 0 {
		return 0
	}
	t = hintedNode
	if node != "" && slices.ContainsFunc(h.ForNodes, func(n discoveryv1.ForNode) bool { return n.Name == node }) {
		t |= forThisNode
	}
	return t
}

// zoneHints returns 1 + the index of an endpoint's list of zones.
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
	list := make([]interned, len(names))
	for i, n := range names {
		list[i] = unique.Make(n)
	}
	s.zones = append(s.zones, list)
	n := uint32(len(s.zones))
	seen[key] = n
	return n
}

// A node without a zone matches no list (rule 73).
func (l *lists) zoneFlags(s *slice) []flags {
	if len(s.zones) == 0 {
		return nil
	}
	out := make([]flags, len(s.zones))
	for i, list := range s.zones {
		out[i] = hintedZone
		if l.zone != "" && slices.ContainsFunc(list, func(z interned) bool { return z.Value() == l.zone }) {
			out[i] |= forThisZone
		}
	}
	return out
}
