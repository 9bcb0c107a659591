package model

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"

	"github.com/weft-proxy/weft/frontends/source/network"
)

// proxyNameLabel means that another proxy implements the Service.
const proxyNameLabel = "service.kubernetes.io/service-proxy-name"

// interned is a string without reference to an API object.
type interned = unique.Handle[string]

// service does not refer to the API object, which needs many times the memory.
type service struct {
	of              *record
	created         time.Time
	clusterIPs      [NumFamilies]netip.Addr
	affinity        time.Duration
	healthPort      uint16
	internalLocal   bool
	externalLocal   bool
	publishNotReady bool
	tooManyReported bool
	ports           []servicePort
	*extras
}

// Services without extras share noExtras.
type extras struct {
	// external has the served addresses.
	addresses, external [NumFamilies][]External
	ranges              Prefixes
	bad                 findings
}

var noExtras = new(extras)

// port is a port of a Service or a slice.
type port struct {
	name     interned
	protocol Protocol
	number   uint16
}

type servicePort struct {
	port
	nodePort uint16
}

func equalParsed(a, b *service) bool {
	return a.of == b.of && a.created.Equal(b.created) && a.clusterIPs == b.clusterIPs &&
		a.affinity == b.affinity && a.healthPort == b.healthPort &&
		a.internalLocal == b.internalLocal && a.externalLocal == b.externalLocal && a.publishNotReady == b.publishNotReady &&
		slices.Equal(a.ports, b.ports) && equalExtras(a.extras, b.extras)
}

func equalExtras(a, b *extras) bool {
	if a == nil || b == nil {
		return a == b
	}
	return slices.Equal(a.addresses[IPv4], b.addresses[IPv4]) && slices.Equal(a.addresses[IPv6], b.addresses[IPv6]) &&
		equalPrefixes(&a.ranges, &b.ranges) && slices.Equal(a.bad, b.bad)
}

// parseService returns nil for a Service without rules: headless, ExternalName, or of another proxy (rules
// 101, 102).
func parseService(o *corev1.Service, ignoreExternalIPs bool) (*service, findings) {
	if _, foreign := o.Labels[proxyNameLabel]; foreign || o.Spec.Type == corev1.ServiceTypeExternalName || o.Spec.ClusterIP == corev1.ClusterIPNone {
		return nil, nil
	}
	s := &service{
		created: o.CreationTimestamp.UTC(), extras: new(extras),
		externalLocal: externalLocal(o), publishNotReady: o.Spec.PublishNotReadyAddresses, ports: make([]servicePort, 0, len(o.Spec.Ports)),
	}
	if !s.parseClusterIPs(o) {
		return nil, s.bad
	}
	if p := o.Spec.InternalTrafficPolicy; p != nil {
		s.internalLocal = *p == corev1.ServiceInternalTrafficPolicyLocal
	}
	s.parseAffinity(o)
	s.parseExternal(o, ignoreExternalIPs)
	s.parseRanges(o)
	s.parseHealthPort(o)
	seen := make(map[servicePort]bool)
	for i := range o.Spec.Ports {
		p, field, err := parseServicePort(&o.Spec.Ports[i])
		if err != nil {
			s.bad.add(index("spec.ports", i)+field, err)
		}
		if p.number == 0 {
			continue
		}
		if field, err = p.checkRepeats(seen); err != nil {
			s.bad.add(index("spec.ports", i)+field, err)
		}
		if p.number != 0 {
			s.ports = append(s.ports, p)
		}
	}
	slices.SortFunc(s.ports, func(a, b servicePort) int {
		return cmp.Or(cmp.Compare(a.name.Value(), b.name.Value()), cmp.Compare(a.protocol, b.protocol), cmp.Compare(a.number, b.number))
	})
	if equalExtras(s.extras, noExtras) {
		s.extras = noExtras
	}
	return s, s.bad
}

// parseClusterIPs reports whether any exists. A manifest without ipFamilies has one address per family (rule
// 97).
func (s *service) parseClusterIPs(o *corev1.Service) bool {
	ips, field := o.Spec.ClusterIPs, "spec.clusterIPs"
	if len(ips) == 0 {
		ips, field = []string{o.Spec.ClusterIP}, "spec.clusterIP"
	}
	families := o.Spec.IPFamilies
	any := false
	for i, text := range ips {
		if text == "" || text == corev1.ClusterIPNone || len(families) > 0 && i >= len(families) {
			continue
		}
		at := field
		if len(o.Spec.ClusterIPs) > 0 {
			at = index(field, i)
		}
		a, err := parseAddr(text)
		switch {
		case err != nil:
		case len(families) > 0 && string(families[i]) != FamilyOf(a).String():
			err = fmt.Errorf("%s is not of the family %s that spec.ipFamilies has for it", a, families[i])
		case s.clusterIPs[FamilyOf(a)].IsValid():
			err = fmt.Errorf("%s is a second %s address: a Service has one of each family", a, FamilyOf(a))
		}
		if err != nil {
			s.bad.add(at, err)
			continue
		}
		s.clusterIPs[FamilyOf(a)] = a
		any = true
	}
	return any
}

// Number 0 means the port is unusable.
func parseServicePort(o *corev1.ServicePort) (p servicePort, field string, err error) {
	if p.port, field, err = parsePort(o.Name, o.Protocol, o.Port); err == nil && o.NodePort != 0 {
		if p.nodePort, err = network.ParsePort(o.NodePort); err != nil {
			return p, ".nodePort", err
		}
	}
	return p, field, err
}

func parsePort(name string, protocol corev1.Protocol, number int32) (p port, field string, err error) {
	p.name = unique.Make(name)
	if p.protocol, err = network.ParseProtocol(protocol); err != nil {
		return p, ".protocol", err
	}
	if p.number, err = network.ParsePort(number); err != nil {
		return p, ".port", err
	}
	return p, "", nil
}

var (
	errRepeatedPort = errors.New("the Service has another port with this number and protocol")
	errRepeatedName = errors.New("the Service has another port with this name and protocol")
	errRepeatedNode = errors.New("the Service has another port with this nodePort and protocol")
)

// checkRepeats sets the number to 0 if name or number repeats, and nodePort to 0 if only nodePort repeats.
// seen has each name, number and nodePort separately.
func (p *servicePort) checkRepeats(seen map[servicePort]bool) (field string, err error) {
	name, number := servicePort{port: port{protocol: p.protocol, name: p.name}}, servicePort{port: port{protocol: p.protocol, number: p.number}}
	switch {
	case seen[number]:
		p.number = 0
		return ".port", errRepeatedPort
	case seen[name]:
		p.number = 0
		return ".name", errRepeatedName
	}
	seen[name], seen[number] = true, true
	node := servicePort{port: port{protocol: p.protocol}, nodePort: p.nodePort}
	if p.nodePort != 0 && seen[node] {
		p.nodePort = 0
		return ".nodePort", errRepeatedNode
	}
	seen[node] = true
	return "", nil
}

func (m *Model) compute(r *record) *Service {
	s := r.parsed
	m.stats.Work++
	if s == nil {
		r.merged = nil
		return nil
	}
	out := &Service{
		Name: r.key, Created: s.created, ClusterIPs: s.clusterIPs,
		InternalLocal: s.internalLocal, ExternalLocal: s.externalLocal, Affinity: s.affinity,
		HealthCheckNodePort: s.healthPort, Ports: make([]Port, len(s.ports)),
		ExternalIPsIgnored: m.cfg.IgnoreExternalIPs && s.hasExternalIPs(),
	}
	for f := range s.ranges {
		out.SourceRanges[f] = s.allowed(Family(f), m.this.Addresses[f])
	}
	if s.healthPort != 0 {
		out.LocalReady = m.lists.localReady(s)
	}
	for i := range s.ports {
		p := &s.ports[i]
		q := &out.Ports[i]
		*q = Port{Name: p.name.Value(), Protocol: p.protocol, Number: p.number}
		for f, ip := range s.clusterIPs {
			if !ip.IsValid() {
				continue
			}
			if m.claims.holds(claim{addr: ip, protocol: p.protocol, port: p.number}, s) {
				q.ClusterIPs[f] = ip
			}
			q.External[f] = m.claims.external(s, p, Family(f))
			q.Backends[f] = m.lists.backends(s, p, Family(f))
		}
		if p.nodePort != 0 && m.claims.holds(claim{protocol: p.protocol, port: p.nodePort}, s) {
			q.NodePort = p.nodePort
		}
	}
	return out
}
