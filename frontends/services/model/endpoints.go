package model

import (
	"iter"
	"net/netip"
	"slices"
)

// Endpoint is where traffic can be sent to.
type Endpoint struct {
	Addr netip.AddrPort
	// Local is true if it is on this node.
	Local bool
}

// Endpoints is an immutable list of endpoints, sorted by address and port, without
// repeats of those. The zero value is empty.
type Endpoints struct {
	list []Endpoint
}

// MakeEndpoints returns the list of these, which are in any order; of repeats the
// first one stays.
func MakeEndpoints(in ...Endpoint) Endpoints {
	if len(in) == 0 {
		return Endpoints{}
	}
	list := slices.Clone(in)
	slices.SortStableFunc(list, func(a, b Endpoint) int { return a.Addr.Compare(b.Addr) })
	return Endpoints{slices.Clip(slices.CompactFunc(list, func(a, b Endpoint) bool { return a.Addr == b.Addr }))}
}

// Len returns how many there are.
func (e Endpoints) Len() int { return len(e.list) }

// All yields them in order.
func (e Endpoints) All() iter.Seq[Endpoint] { return slices.Values(e.list) }

// Has reports whether one with this address and port is in the list.
func (e Endpoints) Has(addr netip.AddrPort) bool {
	_, ok := slices.BinarySearchFunc(e.list, addr, func(x Endpoint, a netip.AddrPort) int { return x.Addr.Compare(a) })
	return ok
}

// Equal reports whether both have the same endpoints.
func (e Endpoints) Equal(o Endpoints) bool { return slices.Equal(e.list, o.list) }

// Since calls left for each endpoint that old has and e has not, and came for each
// that e has and old has not, in order of addresses. One that differs in Local alone
// leaves and comes.
func (e Endpoints) Since(old Endpoints, left, came func(Endpoint)) {
	was, is := old.list, e.list
	for len(was) > 0 || len(is) > 0 {
		switch {
		case len(is) == 0 || len(was) > 0 && was[0].Addr.Compare(is[0].Addr) < 0:
			left(was[0])
			was = was[1:]
		case len(was) == 0 || was[0].Addr.Compare(is[0].Addr) > 0:
			came(is[0])
			is = is[1:]
		default:
			if was[0] != is[0] {
				left(was[0])
				came(is[0])
			}
			was, is = was[1:], is[1:]
		}
	}
}

// Equal reports whether both have the same endpoints in each list.
func (b *Backends) Equal(o *Backends) bool {
	return b.Cluster.Equal(o.Cluster) && b.Local.Equal(o.Local) && b.Draining.Equal(o.Draining)
}

// Empty reports whether there is no endpoint in any list.
func (b *Backends) Empty() bool { return b.Cluster.Len()+b.Local.Len()+b.Draining.Len() == 0 }
