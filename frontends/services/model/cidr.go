package model

import (
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
)

type serviceCIDR struct {
	ranges Prefixes
	bad    findings
}

// SetServiceCIDR stores a ServiceCIDR. One being deleted still counts, because it may have ClusterIPs (rule
// 16).
func (m *Model) SetServiceCIDR(o *networkingv1.ServiceCIDR) {
	m.stats.ServiceCIDREvents++
	c, name := &serviceCIDR{}, strings.Clone(o.Name)
	c.ranges = parsePrefixes("spec.cidrs", o.Spec.CIDRs, &c.bad)
	var before findings
	if was := m.cidrs[name]; was != nil {
		before = was.bad
	}
	m.report.findings("ServiceCIDR", Key{Name: name}, before, c.bad)
	m.cidrs[name] = c
	m.cidrsDirty = true
}

// DeleteServiceCIDR removes a ServiceCIDR.
func (m *Model) DeleteServiceCIDR(name string) {
	m.stats.ServiceCIDREvents++
	if _, ok := m.cidrs[name]; ok {
		delete(m.cidrs, name)
		m.cidrsDirty = true
	}
}

func (m *Model) serviceCIDRs() (out Prefixes) {
	for _, c := range m.cidrs {
		for f := range out {
			out[f] = append(out[f], c.ranges[f]...)
		}
	}
	for f := range out {
		out[f] = sortPrefixes(out[f])
	}
	return out
}
