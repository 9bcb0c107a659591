package model

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// proxyNameLabel on a Service says that another proxy implements it.
const proxyNameLabel = "service.kubernetes.io/service-proxy-name"

// service is a Service's spec in parsed form.
type service struct {
	key           Key
	created       time.Time
	clusterIPs    [Families]netip.Addr
	internalLocal bool
	externalLocal bool
	ports         []servicePort
}

type servicePort struct {
	name     string
	protocol Protocol
	number   uint16
	nodePort uint16
}

// parseService returns nil for a Service that has no rules: a headless one, an
// ExternalName, or one that another proxy implements (rules 101, 102).
func (m *Model) parseService(o *corev1.Service) *service {
	if _, foreign := o.Labels[proxyNameLabel]; foreign || o.Spec.Type == corev1.ServiceTypeExternalName {
		return nil
	}
	s := &service{key: Key{Namespace: o.Namespace, Name: o.Name}, created: o.CreationTimestamp.Time}
	if !m.parseClusterIPs(o, s) {
		return nil
	}
	if p := o.Spec.InternalTrafficPolicy; p != nil {
		s.internalLocal = *p == corev1.ServiceInternalTrafficPolicyLocal
	}
	s.externalLocal = o.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
	for i := range o.Spec.Ports {
		p, field, err := parseServicePort(&o.Spec.Ports[i])
		if err == nil {
			field, err = s.admit(&p)
		}
		if err != nil {
			m.skip("Service", s.key, index("spec.ports", i)+field, err)
		}
		if p.number != 0 {
			s.ports = append(s.ports, p)
		}
	}
	slices.SortFunc(s.ports, func(a, b servicePort) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.protocol, b.protocol), cmp.Compare(a.number, b.number))
	})
	return s
}

// parseClusterIPs reports whether the Service has any.
func (m *Model) parseClusterIPs(o *corev1.Service, s *service) bool {
	ips, field := o.Spec.ClusterIPs, "spec.clusterIPs"
	if len(ips) == 0 {
		ips, field = []string{o.Spec.ClusterIP}, "spec.clusterIP"
	}
	any := false
	for i, text := range ips {
		if text == "" || text == corev1.ClusterIPNone {
			continue
		}
		at := field
		if len(o.Spec.ClusterIPs) > 0 {
			at = index(field, i)
		}
		a, err := parseAddr(text)
		if err == nil && s.clusterIPs[FamilyOf(a)].IsValid() {
			err = fmt.Errorf("%s is a second %s address: a Service has one of each family", a, FamilyOf(a))
		}
		if err != nil {
			m.skip("Service", s.key, at, err)
			continue
		}
		s.clusterIPs[FamilyOf(a)] = a
		any = true
	}
	return any
}

// parseServicePort returns a port whose number is 0 if it can not be used, and
// otherwise the field that the error is about.
func parseServicePort(o *corev1.ServicePort) (p servicePort, field string, err error) {
	p.name = o.Name
	if p.protocol, err = parseProtocol(o.Protocol); err != nil {
		return p, ".protocol", err
	}
	if p.number, err = parsePort(o.Port); err != nil {
		return p, ".port", err
	}
	if o.NodePort != 0 {
		if p.nodePort, err = parsePort(o.NodePort); err != nil {
			return p, ".nodePort", err
		}
	}
	return p, "", nil
}

var (
	errRepeatedPort = errors.New("the Service has another port with this number and protocol")
	errRepeatedName = errors.New("the Service has another port with this name and protocol")
	errRepeatedNode = errors.New("the Service has another port with this nodePort and protocol")
)

// admit checks a port against those before it. It takes the number of a port
// that repeats another, so that its caller leaves it out, and only the nodePort
// where that is what repeats.
func (s *service) admit(p *servicePort) (field string, err error) {
	for i := range s.ports {
		q := &s.ports[i]
		switch {
		case p.protocol != q.protocol:
		case p.number == q.number:
			p.number = 0
			return ".port", errRepeatedPort
		case p.name == q.name:
			p.number = 0
			return ".name", errRepeatedName
		case p.nodePort != 0 && p.nodePort == q.nodePort:
			p.nodePort = 0
			return ".nodePort", errRepeatedNode
		}
	}
	return "", nil
}

// compute returns the outcome for a Service, nil if there is none.
func (m *Model) compute(key Key) *Service {
	s := m.services[key]
	if s == nil {
		return nil
	}
	out := &Service{
		Name: key, Created: s.created, ClusterIPs: s.clusterIPs,
		InternalLocal: s.internalLocal, ExternalLocal: s.externalLocal,
		Ports: make([]Port, len(s.ports)),
	}
	for i := range s.ports {
		p := &s.ports[i]
		q := &out.Ports[i]
		*q = Port{Name: p.name, Protocol: p.protocol, Number: p.number}
		for f, ip := range s.clusterIPs {
			if !ip.IsValid() {
				continue
			}
			if m.claims.holds(claim{addr: ip, protocol: p.protocol, port: p.number}, s) {
				q.ClusterIPs[f] = ip
			}
			q.Backends[f] = m.backends(s, p, Family(f))
		}
		if p.nodePort != 0 && m.claims.holds(claim{protocol: p.protocol, port: p.nodePort}, s) {
			q.NodePort = p.nodePort
		}
	}
	return out
}
