package model

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// slice is an EndpointSlice in parsed form. Nothing in it refers to the API
// object.
type slice struct {
	name    types.NamespacedName
	service Key
	family  Family
	ports   []slicePort
	// endpoints are sorted by address.
	endpoints []endpoint
	// zones are the different lists of zones that endpoints are hinted for.
	zones [][]word
	// trigger is the last-change-trigger-time in nanoseconds, 0 for none.
	trigger int64
	bad     findings
}

type slicePort struct {
	name     word
	protocol Protocol
	number   uint16
}

type endpoint struct {
	addr  netip.Addr
	state state
	traits
	// zones is 1 + the index of its list in the slice's zones, 0 for no hint.
	zones uint32
}

// traits are what else matters of an endpoint.
type traits uint8

const (
	// terminating endpoints give way to another one with the same address.
	terminating traits = 1 << iota
	// onThisNode is the endpoint of a pod on this node.
	onThisNode
	// hintedNode and forThisNode: there are node hints, this node is in them.
	hintedNode
	forThisNode
	// hintedZone and forThisZone: the same for zones. They are known only when
	// the node's zone is, so not in parsed form.
	hintedZone
	forThisZone
)

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
func stateOf(c *discoveryv1.EndpointConditions) (state, traits) {
	isReady := c.Ready == nil || *c.Ready
	isServing := c.Serving == nil || *c.Serving
	var t traits
	if c.Terminating != nil && *c.Terminating {
		t = terminating
	}
	switch {
	case isReady:
		return ready, t
	case isServing && t != 0:
		return leaving, t
	case isServing:
		return serving, t
	default:
		return unusable, t
	}
}

var (
	errNoAddress = errors.New("an endpoint needs an address")
	errNoName    = errors.New("a port without a name belongs to no port of a Service")
	errNoPort    = errors.New("a port without a number means all ports, which a Service can not use")
)

// equalSlice reports whether two forms of a slice say the same, whatever
// triggered them.
func equalSlice(a, b *slice) bool {
	return a.service == b.service && a.family == b.family && slices.Equal(a.ports, b.ports) &&
		slices.Equal(a.endpoints, b.endpoints) && slices.EqualFunc(a.zones, b.zones, slices.Equal) && slices.Equal(a.bad, b.bad)
}

// parseSlice returns nil for a slice that no Service uses: a headless one, one
// without a Service's name, one of names (rules 69, 99, 103).
func (m *Model) parseSlice(o *discoveryv1.EndpointSlice) (*slice, findings) {
	owner := o.Labels[discoveryv1.LabelServiceName]
	if _, headless := o.Labels[corev1.IsHeadlessService]; headless || owner == "" {
		return nil, nil
	}
	s := &slice{service: m.keyOf(o.Namespace, owner), trigger: triggerOf(o)}
	s.name = types.NamespacedName{Namespace: s.service.Namespace, Name: strings.Clone(o.Name)}
	switch o.AddressType {
	case discoveryv1.AddressTypeIPv4:
		s.family = IPv4
	case discoveryv1.AddressTypeIPv6:
		s.family = IPv6
	case discoveryv1.AddressTypeFQDN:
		return nil, nil
	default:
		s.bad.add("addressType", fmt.Errorf("unknown address type %q: want IPv4 or IPv6", o.AddressType))
		return nil, s.bad
	}
	s.ports = make([]slicePort, 0, len(o.Ports))
	for i := range o.Ports {
		p, field, err := parseSlicePort(&o.Ports[i])
		if err != nil {
			s.bad.add(index("ports", i)+field, err)
			continue
		}
		s.ports = append(s.ports, p)
	}
	s.endpoints = make([]endpoint, 0, len(o.Endpoints))
	zones := make(map[string]uint32)
	for i := range o.Endpoints {
		from := &o.Endpoints[i]
		a, err := endpointAddr(from, s.family)
		if err != nil {
			s.bad.add(index("endpoints", i)+".addresses[0]", err)
			continue
		}
		e := endpoint{addr: a}
		e.state, e.traits = stateOf(&from.Conditions)
		if m.node != "" && from.NodeName != nil && *from.NodeName == m.node {
			e.traits |= onThisNode
		}
		if from.Hints != nil {
			e.traits |= nodeHints(from.Hints, m.node)
			e.zones = s.zoneHints(from.Hints, zones)
		}
		s.endpoints = append(s.endpoints, e)
	}
	slices.SortFunc(s.endpoints, func(a, b endpoint) int {
		return cmp.Or(a.addr.Compare(b.addr), cmp.Compare(a.state, b.state), cmp.Compare(a.traits, b.traits), cmp.Compare(a.zones, b.zones))
	})
	return s, s.bad
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
	if o.Name == nil {
		return p, ".name", errNoName
	}
	p.name = unique.Make(*o.Name)
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
