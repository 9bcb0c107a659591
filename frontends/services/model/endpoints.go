package model

import (
	"iter"
	"net/netip"
	"slices"
)

// Endpoint is a destination of traffic.
type Endpoint struct {
	// Addr has no zone.
	Addr netip.AddrPort `json:"address"`
	// Local is true for endpoints on this node.
	Local bool `json:"local"`
}

// Endpoints is an immutable list sorted by address and port, without duplicates. The zero value is empty.
// Versions share equal parts, so a comparison costs the difference.
type Endpoints struct {
	// flags are flagLocal or 0; widthIPv4 if all are IPv4
	all *packedList
}

const flagLocal = 1

// MakeEndpoints returns a list of endpoints in any order. The first duplicate wins.
func MakeEndpoints(in ...Endpoint) Endpoints {
	if len(in) == 0 {
		return Endpoints{}
	}
	list := slices.Clone(in)
	slices.SortStableFunc(list, func(a, b Endpoint) int { return a.Addr.Compare(b.Addr) })
	list = slices.CompactFunc(list, func(a, b Endpoint) bool { return a.Addr == b.Addr })
	width := widthIPv4
	if slices.ContainsFunc(list, func(e Endpoint) bool { return !e.Addr.Addr().Is4() }) {
		width = widthIPv6
	}
	all := make([]packedEndpoint, len(list))
	for i, e := range list {
		all[i] = e.pack(width)
	}
	return Endpoints{newList(all, width)}
}

func (e Endpoint) pack(width int) packedEndpoint {
	if e.Local {
		return pack(e.Addr, flagLocal, width)
	}
	return pack(e.Addr, 0, width)
}

func unpackEndpoint(s string) Endpoint {
	return Endpoint{Addr: unpack(s), Local: s[len(s)-1] == flagLocal}
}

// Len returns the number of endpoints.
func (e Endpoints) Len() int { return e.all.len() }

// All yields the endpoints in order.
func (e Endpoints) All() iter.Seq[Endpoint] {
	return func(yield func(Endpoint) bool) {
		e.all.each(func(s string) bool { return yield(unpackEndpoint(s)) })
	}
}

// Has reports whether the list has an address and port.
func (e Endpoints) Has(addr netip.AddrPort) bool {
	if e.all == nil || e.all.width == widthIPv4 && !addr.Addr().Is4() {
		return false
	}
	var work uint64
	p, key := pack(addr, 0, int(e.all.width)), e.all.width-1
	return e.all.first(string(p[:key]), &work) != ""
}

// Equal reports whether both have the same endpoints.
func (e Endpoints) Equal(o Endpoints) bool {
	var work uint64
	return e.equal(o, &work)
}

func (e Endpoints) equal(o Endpoints, work *uint64) bool {
	if e.Len() != o.Len() || e.all != nil && e.all.width != o.all.width {
		return false
	}
	same := true
	e.all.diff(o.all, func(string, bool) bool { same = false; return false }, work)
	return same
}

// Diff calls left for endpoints only in old and came for endpoints only in e, ordered by address. It
// calls both if Local differs.
func (e Endpoints) Diff(old Endpoints, left, came func(Endpoint)) {
	was, now := old.all, e.all
	if was != nil && now != nil && was.width != now.width {
		was, now = was.widened(), now.widened()
	}
	var work uint64
	now.diff(was, func(s string, isNew bool) bool {
		if isNew {
			came(unpackEndpoint(s))
		} else {
			left(unpackEndpoint(s))
		}
		return true
	}, &work)
}

func (l *packedList) widened() *packedList {
	if l.width == widthIPv6 {
		return l
	}
	all := make([]packedEndpoint, 0, l.len())
	l.each(func(s string) bool {
		all = append(all, unpackEndpoint(s).pack(widthIPv6))
		return true
	})
	return newList(all, widthIPv6)
}

// Equal reports whether all lists are equal.
func (b *Backends) Equal(o *Backends) bool {
	var work uint64
	return b.equal(o, &work)
}

func (b *Backends) equal(o *Backends, work *uint64) bool {
	return b.Cluster.equal(o.Cluster, work) && b.Local.equal(o.Local, work) && b.Draining.equal(o.Draining, work)
}

// Empty reports whether all lists are empty.
func (b *Backends) Empty() bool { return b.Cluster.Len()+b.Local.Len()+b.Draining.Len() == 0 }
