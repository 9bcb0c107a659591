package model

import (
	"net/netip"
	"slices"
)

type links struct {
	// at is sorted.
	of map[netip.Addr]Link
	at map[Link][]netip.Addr
}

// SetLink stores the interface for packets of an address; the zero Link removes it.
func (m *Model) SetLink(a netip.Addr, l Link) {
	was := m.links.of[a]
	if was == l {
		return
	}
	m.touchAddress(a)
	delete(m.links.of, a)
	if rest := slices.DeleteFunc(m.links.at[was], func(b netip.Addr) bool { return b == a }); len(rest) > 0 {
		m.links.at[was] = rest
	} else {
		delete(m.links.at, was)
	}
	if l != (Link{}) {
		m.links.of[a] = l
		at, _ := slices.BinarySearchFunc(m.links.at[l], a, netip.Addr.Compare)
		m.links.at[l] = slices.Insert(m.links.at[l], at, a)
	}
	m.touchAddress(a)
}

// linkOf also returns more addresses without a pod that this node routes to the interface. On a
// bridge the pods themselves claim addresses, so more is empty. An interface shared by several pods
// counts for no pod.
func (m *Model) linkOf(addresses []netip.Addr) (l Link, more []netip.Addr) {
	for _, a := range addresses {
		if l = m.links.of[a]; l != (Link{}) {
			break
		}
	}
	for _, a := range m.links.at[l] {
		switch {
		case slices.Contains(addresses, a):
		case len(m.claimants(a)) > 0:
			return Link{}, nil
		case !l.Bridged:
			more = append(more, a)
		}
	}
	return l, more
}
