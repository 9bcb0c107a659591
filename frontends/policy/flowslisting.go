package policy

import (
	"net/netip"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/frontends/policy/judge"
	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/policy/render"
)

type listing struct {
	// addresses are under recheck: true if a denied connection there may still be answered. own are
	// the node's.
	addresses map[netip.Addr]bool
	own       map[netip.Addr]struct{}
	denied    map[netip.Addr]struct{} // of denied connections
	deleted   []client.Flow
}

// newListing takes connections narrowed before answered as without outstanding answers.
func newListing(due []render.Rechecked, own []netip.Addr, answered time.Time) *listing {
	l := &listing{addresses: make(map[netip.Addr]bool, len(due)), own: make(map[netip.Addr]struct{}, len(own)), denied: make(map[netip.Addr]struct{})}
	for _, r := range due {
		l.addresses[r.Addr] = r.Committed.After(answered)
	}
	for _, a := range own {
		l.own[a] = struct{}{}
	}
	return l
}

func (l *listing) allOf(a netip.Addr) bool {
	_, ok := l.addresses[unspecified(a)]
	return ok
}

func unspecified(a netip.Addr) netip.Addr {
	if a.Is6() {
		return netip.IPv6Unspecified()
	}
	return netip.IPv4Unspecified()
}

func (l *listing) local(a netip.Addr) bool {
	_, ok := l.own[a]
	return ok
}

// judge adds a denied connection. Its ends are after destination NAT and before source NAT.
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
	answers := false
	for d, a := range [model.NumDirections]netip.Addr{model.Ingress: flow.Destination, model.Egress: flow.Source} {
		answers = answers || l.addresses[a] || l.addresses[unspecified(a)]
		if _, ok := l.addresses[a]; ok || !v.Ends[d].Allowed && l.allOf(a) {
			l.denied[a] = struct{}{}
		}
	}
	if deletable(f, answers) && len(l.deleted) < maxDeleted {
		l.deleted = append(l.deleted, *f)
	}
}

// deletable is false if conntrack would take a later packet as the first of a connection, perhaps
// in the other, allowed direction. An end of TCP or SCTP sends until it is closed, other ends only
// answer.
func deletable(f *client.Flow, answers bool) bool {
	switch model.Protocol(f.Protocol) {
	case model.TCP:
		return f.TCPState == weftv1.TCPState_TCP_STATE_TIME_WAIT || f.TCPState == weftv1.TCPState_TCP_STATE_CLOSE
	case model.SCTP:
		return false
	default:
		return !answers
	}
}
