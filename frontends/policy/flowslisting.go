package policy

import (
	"net/netip"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/frontends/policy/judge"
	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/policy/render"
)

// listing is what one listing finds.
type listing struct {
	// addresses are those that are looked at, own those of the node.
	addresses, own map[netip.Addr]struct{}
	// denied are addresses of connections that are denied, deleted the connections to
	// delete.
	denied  map[netip.Addr]struct{}
	deleted []client.Flow
}

func newListing(due []render.Rechecked, own []netip.Addr) *listing {
	l := &listing{addresses: make(map[netip.Addr]struct{}, len(due)), own: make(map[netip.Addr]struct{}, len(own)), denied: make(map[netip.Addr]struct{})}
	for _, r := range due {
		l.addresses[r.Addr] = struct{}{}
	}
	for _, a := range own {
		l.own[a] = struct{}{}
	}
	return l
}

// all reports whether all connections of a family are looked at.
func (l *listing) all() bool {
	return l.allOf(netip.IPv4Unspecified()) || l.allOf(netip.IPv6Unspecified())
}

// allOf reports whether all connections of an address's family are looked at.
func (l *listing) allOf(a netip.Addr) bool {
	unspecified := netip.IPv4Unspecified()
	if a.Is6() {
		unspecified = netip.IPv6Unspecified()
	}
	_, ok := l.addresses[unspecified]
	return ok
}

// local reports whether an address is the node's.
func (l *listing) local(a netip.Addr) bool {
	_, ok := l.own[a]
	return ok
}

// judge judges a connection by its ends after destination NAT and before source NAT.
func (l *listing) judge(r rechecked, f *client.Flow) {
	flow := judge.Flow{
		Source: f.Source.Addr(), Destination: f.ReplySource.Addr(),
		Protocol: model.Protocol(f.Protocol), Port: f.ReplySource.Port(),
	}
	if !flow.Source.IsValid() || !flow.Destination.IsValid() {
		return
	}
	v := r.Judge(flow, l.local)
	if v.Allowed {
		return
	}
	for d, a := range [model.NumDirections]netip.Addr{model.Ingress: flow.Destination, model.Egress: flow.Source} {
		if _, ok := l.addresses[a]; ok || !v.Ends[d].Allowed && l.allOf(a) {
			l.denied[a] = struct{}{}
		}
	}
	if !open(f) && len(l.deleted) < maxDeleted {
		l.deleted = append(l.deleted, *f)
	}
}

// open reports whether a connection has ends that go on to send if its entry is deleted, in
// the middle of the connection.
func open(f *client.Flow) bool {
	switch model.Protocol(f.Protocol) {
	case model.TCP:
		return f.TCPState != weftv1.TCPState_TCP_STATE_TIME_WAIT && f.TCPState != weftv1.TCPState_TCP_STATE_CLOSE
	case model.SCTP:
		return true
	default:
		return false
	}
}
