package model

import (
	"iter"
	"net/netip"
	"slices"
	"strings"
)

// Endpoint is a destination of traffic.
type Endpoint struct {
	// without zone
	Addr netip.AddrPort `json:"address"`
	// on this node
	Local bool `json:"local"`
}

// Endpoints is an immutable list of endpoints, sorted by address and port, without duplicates.
type Endpoints struct {
	// one byte with the width, and a packed list, which is not empty; flags are flagLocal or 0
	packed string
}

const flagLocal = 1

// MakeEndpoints returns a list of endpoints, in any order, with the same family. The first duplicate wins.
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
	all := make([]entry, len(list))
	for i, e := range list {
		all[i] = pack(e.Addr, localFlag(e.Local), width)
	}
	return Endpoints{string(rune(width)) + packSorted(all, width)}
}

func (e Endpoints) list() (list string, width int) {
	if e.packed == "" {
		return "", 1
	}
	return e.packed[1:], int(e.packed[0])
}

func localFlag(local bool) byte {
	if local {
		return flagLocal
	}
	return 0
}

func unpackEndpoint(s string) Endpoint {
	return Endpoint{Addr: unpack(s), Local: s[len(s)-1] == flagLocal}
}

// Len returns the number of endpoints.
func (e Endpoints) Len() int {
	list, width := e.list()
	return len(list) / width
}

// At returns the i-th endpoint.
func (e Endpoints) At(i int) Endpoint {
	list, width := e.list()
	return unpackEndpoint(list[i*width : (i+1)*width])
}

// All yields the endpoints in order.
func (e Endpoints) All() iter.Seq[Endpoint] {
	return func(yield func(Endpoint) bool) {
		for list, width := e.list(); list != ""; list = list[width:] {
			if !yield(unpackEndpoint(list[:width])) {
				return
			}
		}
	}
}

// Has reports whether the list has an address and port.
func (e Endpoints) Has(addr netip.AddrPort) bool {
	list, width := e.list()
	if width != widths[FamilyOf(addr.Addr())] {
		return false
	}
	p := pack(addr, 0, width)
	key := string(p[:width-1])
	return strings.HasPrefix(list[before(list, key, width):], key)
}

// Equal reports whether both have the same endpoints.
func (e Endpoints) Equal(o Endpoints) bool { return e == o }

// Diff calls left for endpoints only in old and came for endpoints only in e, ordered by address. It calls
// both if Local differs. Both lists have the same family.
func (e Endpoints) Diff(old Endpoints, left, came func(Endpoint)) {
	was, oldWidth := old.list()
	now, width := e.list()
	diffPacked(was, now, max(oldWidth, width), func(s string, isNew bool) {
		if isNew {
			came(unpackEndpoint(s))
		} else {
			left(unpackEndpoint(s))
		}
	})
}

// Equal reports whether all lists are equal.
func (b *Backends) Equal(o *Backends) bool {
	return b.Cluster.Equal(o.Cluster) && b.Local.Equal(o.Local) && b.Draining.Equal(o.Draining)
}

// Empty reports whether all lists are empty.
func (b *Backends) Empty() bool { return b.Cluster.Len()+b.Local.Len()+b.Draining.Len() == 0 }
