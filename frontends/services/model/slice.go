package model

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// slice does not refer to the API object.
type slice struct {
	name   types.NamespacedName
	of     *record
	family Family
	ports  []port
	// endpoints are sorted by address. Each has 4 or 16 bytes of address and 1 of flags. If the slice has
	// zones, zoneBytes bytes follow with 1 + the zones' index, or 0 without hint.
	endpoints string
	// distinct lists of hinted zones
	zones [][]interned
	// nil unless endpoints have pods and the kubelet is followed
	targets    []target
	prev, next *slice
	// last-change-trigger-time in nanoseconds; 0 if absent
	trigger int64
	bad     findings
}

func (p port) compare(name interned, protocol Protocol) int {
	return cmp.Or(cmp.Compare(p.name.Value(), name.Value()), cmp.Compare(p.protocol, protocol))
}

type endpoint struct {
	addr netip.Addr
	flags
	// 1 + index in the slice's zones; 0 without hint
	zones uint32
	// of an endpoint on this node, or nil
	pod *PodID
}

var (
	errNoAddress = errors.New("an endpoint needs an address")
	errNoName    = errors.New("a port without a name does not match any port of a Service")
	errNoPort    = errors.New("a port without a number means all ports, which a Service cannot use")
)

// equalSlice ignores the trigger.
func equalSlice(a, b *slice) bool {
	return a.of == b.of && a.family == b.family && slices.Equal(a.ports, b.ports) &&
		a.endpoints == b.endpoints && slices.Equal(a.targets, b.targets) && slices.EqualFunc(a.zones, b.zones, slices.Equal) && slices.Equal(a.bad, b.bad)
}

// parseSlice returns nil for unused slices (rules 69, 99, 103).
func (m *Model) parseSlice(o *discoveryv1.EndpointSlice) (*slice, findings) {
	owner := o.Labels[discoveryv1.LabelServiceName]
	if _, headless := o.Labels[corev1.IsHeadlessService]; headless || owner == "" {
		return nil, nil
	}
	s := &slice{trigger: triggerOf(o)}
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
	s.of = m.recordFor(o.Namespace, owner)
	s.name = types.NamespacedName{Namespace: s.of.key.Namespace, Name: strings.Clone(o.Name)}
	s.ports = make([]port, 0, len(o.Ports))
	for i := range o.Ports {
		p, field, err := parseSlicePort(&o.Ports[i])
		if err != nil {
			s.bad.add(index("ports", i)+field, err)
			continue
		}
		s.ports = append(s.ports, p)
	}
	slices.SortStableFunc(s.ports, func(a, b port) int { return a.compare(b.name, b.protocol) })
	all := make([]endpoint, 0, len(o.Endpoints))
	zones := make(map[string]uint32)
	for i := range o.Endpoints {
		from := &o.Endpoints[i]
		a, err := endpointAddr(from, s.family)
		if err != nil {
			s.bad.add(index("endpoints", i)+".addresses[0]", err)
			continue
		}
		e := endpoint{addr: a, flags: stateFlags(&from.Conditions)}
		if m.cfg.NodeName == "" || from.NodeName == nil || *from.NodeName != m.cfg.NodeName {
			e.flags |= elsewhere
			m.named.elsewhere = m.named.elsewhere || from.NodeName != nil
		} else {
			m.named.here = true
			e.pod = parseTarget(from)
		}
		if from.Hints != nil {
			e.flags |= nodeHints(from.Hints, m.cfg.NodeName)
			e.zones = s.zoneHints(from.Hints, zones)
		}
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b endpoint) int {
		return cmp.Or(a.addr.Compare(b.addr), cmp.Compare(a.flags, b.flags), cmp.Compare(a.zones, b.zones))
	})
	s.pack(all)
	return s, s.bad
}

func (s *slice) pack(all []endpoint) {
	packed := make([]byte, 0, len(all)*s.stride())
	for _, e := range all {
		packed = append(packed, e.addr.AsSlice()...)
		if e.pod != nil {
			s.targets = append(s.targets, target{at: len(packed), api: e.flags, pod: *e.pod})
		}
		packed = append(packed, byte(e.flags))
		for n := s.zoneBytes(); n > 0; n-- {
			packed = append(packed, byte(e.zones>>(8*(n-1))))
		}
	}
	s.endpoints = string(packed)
}

func (s *slice) zoneBytes() int {
	switch n := len(s.zones); {
	case n == 0:
		return 0
	case n < 1<<8:
		return 1
	default:
		return 4
	}
}

func (s *slice) stride() int { return addrBytes[s.family] + 1 + s.zoneBytes() }

var addrBytes = [NumFamilies]int{IPv4: 4, IPv6: 16}

func (s *slice) len() int {
	if s == nil {
		return 0
	}
	return len(s.endpoints) / s.stride()
}

// zones has this node's flags for each list of zones.
func (s *slice) gather(all []entry, port uint16, zones []flags) []entry {
	all = slices.Grow(all, s.len())
	w := widths[s.family]
	var e entry
	addr := e[:addrBytes[s.family]]
	binary.BigEndian.PutUint16(e[w-3:], port)
	for rest := s.endpoints; rest != ""; {
		copy(addr, rest)
		rest = rest[len(addr):]
		t, n := flags(rest[0]), uint32(0)
		rest = rest[1:]
		for range s.zoneBytes() {
			n, rest = n<<8|uint32(rest[0]), rest[1:]
		}
		if n != 0 {
			t |= zones[n-1]
		}
		e[w-1] = byte(t)
		all = append(all, e)
	}
	return all
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

func parseSlicePort(o *discoveryv1.EndpointPort) (p port, field string, err error) {
	if o.Name == nil {
		return p, ".name", errNoName
	}
	if o.Port == nil {
		return p, ".port", errNoPort
	}
	return parsePort(*o.Name, ptr.Deref(o.Protocol, ""), *o.Port)
}
