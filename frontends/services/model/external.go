package model

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weft-proxy/weft/frontends/source/network"
)

const defaultAffinity = time.Duration(corev1.DefaultClientIPServiceAffinitySeconds) * time.Second

var (
	errOwnClusterIP = errors.New("is the Service's own ClusterIP")
	errNoHealthPort = errors.New("a Service of type LoadBalancer with externalTrafficPolicy Local requires it")
)

// externalLocal counts external addresses even if unused (rules 35, 55).
func externalLocal(o *corev1.Service) bool {
	switch o.Spec.Type {
	case corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort:
	case corev1.ServiceTypeClusterIP, "":
		if len(o.Spec.ExternalIPs) == 0 {
			return false
		}
	default:
		return false
	}
	return o.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

func (s *service) parseAffinity(o *corev1.Service) {
	if o.Spec.SessionAffinity != corev1.ServiceAffinityClientIP {
		return
	}
	s.affinity = defaultAffinity
	if c := o.Spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
		n := *c.ClientIP.TimeoutSeconds
		if n < 1 {
			s.bad.add("spec.sessionAffinityConfig.clientIP.timeoutSeconds", fmt.Errorf("%d s is not valid: using %s", n, defaultAffinity))
			return
		}
		s.affinity = time.Duration(n) * time.Second
	}
}

// parseExternal lets a duplicate address count as ClusterIP first, then as load balancer address.
func (s *service) parseExternal(o *corev1.Service, ignoreExternalIPs bool) {
	for i, text := range o.Spec.ExternalIPs {
		if strings.TrimSpace(text) != "" {
			s.addExternal(index("spec.externalIPs", i), text, false)
		}
	}
	for i := range o.Status.LoadBalancer.Ingress {
		in := &o.Status.LoadBalancer.Ingress[i]
		if in.IP != "" && (in.IPMode == nil || *in.IPMode == corev1.LoadBalancerIPModeVIP) {
			s.addExternal(index("status.loadBalancer.ingress", i)+".ip", in.IP, true)
		}
	}
	for f, all := range s.addresses {
		// Load balancer addresses were added last and come first.
		slices.Reverse(all)
		slices.SortStableFunc(all, func(a, b External) int { return a.Addr.Compare(b.Addr) })
		s.addresses[f] = slices.Clip(slices.CompactFunc(all, func(a, b External) bool { return a.Addr == b.Addr }))
	}
	s.setExternal(ignoreExternalIPs)
}

func (s *service) setExternal(ignoreExternalIPs bool) {
	s.external = s.addresses
	if !ignoreExternalIPs {
		return
	}
	for f, all := range s.addresses {
		s.external[f] = slices.DeleteFunc(slices.Clone(all), func(e External) bool { return !e.LoadBalancer })
	}
}

func (s *service) hasExternalIPs() bool {
	is := func(e External) bool { return !e.LoadBalancer }
	return slices.ContainsFunc(s.addresses[IPv4], is) || slices.ContainsFunc(s.addresses[IPv6], is)
}

// SetIgnoreExternalIPs changes Config.IgnoreExternalIPs and returns the number of Services with external IPs.
func (m *Model) SetIgnoreExternalIPs(ignore bool) (services int) {
	for _, r := range m.records {
		if r.parsed == nil || !r.parsed.hasExternalIPs() {
			continue
		}
		services++
		if ignore == m.cfg.IgnoreExternalIPs {
			continue
		}
		s, e := *r.parsed, *r.parsed.extras
		s.extras = &e
		s.setExternal(ignore)
		r.parsed, r.merged = &s, nil
		m.dirty[r] = struct{}{}
	}
	m.cfg.IgnoreExternalIPs = ignore
	return services
}

func (s *service) addExternal(field, text string, loadBalancer bool) {
	a, err := parseAddr(text)
	if err != nil {
		s.bad.add(field, err)
		return
	}
	f := FamilyOf(a)
	switch {
	case !s.clusterIPs[f].IsValid():
		// rules 32, 40
	case s.clusterIPs[f] == a:
		s.bad.add(field, fmt.Errorf("%s %w", a, errOwnClusterIP))
	default:
		s.addresses[f] = append(s.addresses[f], External{Addr: a, LoadBalancer: loadBalancer})
	}
}

// A family without ranges, or with an all-address range, allows all (rules 45, 46).
func (s *service) parseRanges(o *corev1.Service) {
	all := parsePrefixes("spec.loadBalancerSourceRanges", o.Spec.LoadBalancerSourceRanges, &s.bad)
	for f := range all {
		if s.clusterIPs[f].IsValid() && !slices.ContainsFunc(all[f], func(p netip.Prefix) bool { return p.Bits() == 0 }) {
			s.ranges[f] = all[f]
		}
	}
}

// allowed adds load balancer addresses if the source ranges contain the node's address. The node
// often has such an address too and uses it as a source (rule 44).
func (s *service) allowed(f Family, node netip.Addr) []netip.Prefix {
	base := s.ranges[f]
	if !node.IsValid() || !slices.ContainsFunc(base, func(p netip.Prefix) bool { return p.Contains(node) }) {
		return base
	}
	out := slices.Clone(base)
	for _, e := range s.external[f] {
		if e.LoadBalancer {
			out = append(out, netip.PrefixFrom(e.Addr, e.Addr.BitLen()))
		}
	}
	return sortPrefixes(out)
}

func (s *service) parseHealthPort(o *corev1.Service) {
	if o.Spec.Type != corev1.ServiceTypeLoadBalancer || !s.externalLocal {
		return
	}
	if o.Spec.HealthCheckNodePort == 0 {
		s.bad.add("spec.healthCheckNodePort", errNoHealthPort)
		return
	}
	var err error
	if s.healthPort, err = network.ParsePort(o.Spec.HealthCheckNodePort); err != nil {
		s.bad.add("spec.healthCheckNodePort", err)
	}
}
