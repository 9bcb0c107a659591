package model

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// slice is an EndpointSlice in parsed form.
type slice struct {
	service   Key
	family    Family
	ports     []slicePort
	endpoints []endpoint
}

type slicePort struct {
	name     string
	protocol Protocol
	number   uint16
}

type endpoint struct {
	addr  netip.Addr
	state state
	local bool
}

// state is how far an endpoint can be used, the best first.
type state uint8

const (
	// ready endpoints get new flows.
	ready state = iota
	// leaving endpoints serve but terminate: they get new flows if none is ready.
	leaving
	// serving endpoints are neither ready nor terminating, but serve the flows
	// that they have.
	serving
	// unusable endpoints get nothing.
	unusable
)

// stateOf applies the defaults of the API (rule 61).
func stateOf(c *discoveryv1.EndpointConditions) state {
	isReady := c.Ready == nil || *c.Ready
	isServing := isReady
	if c.Serving != nil {
		isServing = *c.Serving
	} else if c.Ready == nil {
		isServing = true
	}
	terminating := c.Terminating != nil && *c.Terminating
	switch {
	case isReady:
		return ready
	case isServing && terminating:
		return leaving
	case isServing:
		return serving
	default:
		return unusable
	}
}

var (
	errNoAddress = errors.New("an endpoint needs an address")
	errNoPort    = errors.New("a port without a number means all ports, which a Service can not use")
)

// parseSlice returns nil for a slice that no Service uses: a headless one, one
// without a Service's name, one of names (rules 69, 99, 103).
func (m *Model) parseSlice(o *discoveryv1.EndpointSlice) *slice {
	name := Key{Namespace: o.Namespace, Name: o.Name}
	owner := o.Labels[discoveryv1.LabelServiceName]
	if _, headless := o.Labels[corev1.IsHeadlessService]; headless || owner == "" {
		return nil
	}
	s := &slice{service: Key{Namespace: o.Namespace, Name: owner}}
	switch o.AddressType {
	case discoveryv1.AddressTypeIPv4:
		s.family = IPv4
	case discoveryv1.AddressTypeIPv6:
		s.family = IPv6
	case discoveryv1.AddressTypeFQDN:
		return nil
	default:
		m.skip("EndpointSlice", name, "addressType", fmt.Errorf("unknown address type %q: want IPv4 or IPv6", o.AddressType))
		return nil
	}
	for i := range o.Ports {
		p, field, err := parseSlicePort(&o.Ports[i])
		if err != nil {
			m.skip("EndpointSlice", name, index("ports", i)+field, err)
			continue
		}
		s.ports = append(s.ports, p)
	}
	s.endpoints = make([]endpoint, 0, len(o.Endpoints))
	for i := range o.Endpoints {
		e := &o.Endpoints[i]
		a, err := endpointAddr(e, s.family)
		if err != nil {
			m.skip("EndpointSlice", name, index("endpoints", i)+".addresses[0]", err)
			continue
		}
		s.endpoints = append(s.endpoints, endpoint{
			addr: a, state: stateOf(&e.Conditions),
			local: m.node != "" && e.NodeName != nil && *e.NodeName == m.node,
		})
	}
	return s
}

func endpointAddr(e *discoveryv1.Endpoint, f Family) (netip.Addr, error) {
	if len(e.Addresses) == 0 {
		return netip.Addr{}, errNoAddress
	}
	a, err := parseAddr(e.Addresses[0])
	if err == nil && FamilyOf(a) != f {
		err = fmt.Errorf("%s is not an %s address as the slice says", a, f)
	}
	return a, err
}

func parseSlicePort(o *discoveryv1.EndpointPort) (p slicePort, field string, err error) {
	// The API server always fills the name in; a manifest for a single port
	// may leave it out, which means the same as the empty one.
	if o.Name != nil {
		p.name = *o.Name
	}
	var protocol corev1.Protocol
	if o.Protocol != nil {
		protocol = *o.Protocol
	}
	if p.protocol, err = parseProtocol(protocol); err != nil {
		return p, ".protocol", err
	}
	if o.Port == nil {
		return p, ".port", errNoPort
	}
	if p.number, err = parsePort(*o.Port); err != nil {
		return p, ".port", err
	}
	return p, "", nil
}

// candidate is an endpoint of one port, before the choice.
type candidate struct {
	addr  netip.AddrPort
	state state
	local bool
}

// backends chooses the endpoints of one port in one family.
func (m *Model) backends(s *service, p *servicePort, f Family) Backends {
	all := m.candidates(s.key, p, f)
	var b Backends
	chosen := choose(all, false)
	b.Cluster = m.take(s, p, all, func(c *candidate) bool { return c.state <= chosen })
	if s.internalLocal || s.externalLocal {
		here := choose(all, true)
		b.Local = m.take(s, p, all, func(c *candidate) bool { return c.local && c.state <= here })
	}
	if p.protocol == UDP {
		b.Draining = m.take(s, p, all, func(c *candidate) bool { return c.state > chosen && c.state <= serving })
	}
	return b
}

// candidates merges the slices of a Service: sorted, and of repeats the one
// that can be used best (rule 66). The result is valid until the next call.
func (m *Model) candidates(key Key, p *servicePort, f Family) []candidate {
	all := m.scratch[:0]
	for s := range m.byService[key] {
		if s.family != f {
			continue
		}
		for i := range s.ports {
			q := &s.ports[i]
			if q.name != p.name || q.protocol != p.protocol {
				continue
			}
			for j := range s.endpoints {
				e := &s.endpoints[j]
				all = append(all, candidate{addr: netip.AddrPortFrom(e.addr, q.number), state: e.state, local: e.local})
			}
		}
	}
	m.scratch = all
	slices.SortFunc(all, func(a, b candidate) int {
		if c := a.addr.Compare(b.addr); c != 0 {
			return c
		}
		if a.local != b.local && a.state == b.state {
			if a.local {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.state, b.state)
	})
	return slices.CompactFunc(all, func(a, b candidate) bool { return a.addr == b.addr })
}

// choose returns the worst state that is used: ready where there is such an
// endpoint, or else leaving (rules 63, 64).
func choose(all []candidate, local bool) state {
	for i := range all {
		if all[i].state == ready && (all[i].local || !local) {
			return ready
		}
	}
	return leaving
}

// take returns the endpoints that want holds for.
func (m *Model) take(s *service, p *servicePort, all []candidate, want func(*candidate) bool) []Endpoint {
	n := 0
	for i := range all {
		if want(&all[i]) {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	if n > MaxEndpoints {
		m.skip("Service", s.key, "spec.ports["+p.name+"]", fmt.Errorf("%d endpoints: only the first %d are used", n, MaxEndpoints))
		n = MaxEndpoints
	}
	out := make([]Endpoint, 0, n)
	for i := range all {
		if len(out) < n && want(&all[i]) {
			out = append(out, Endpoint{Addr: all[i].addr, Local: all[i].local})
		}
	}
	return out
}
