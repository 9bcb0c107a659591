package model

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// DeletionTaint marks a node that the cluster autoscaler is about to remove.
const DeletionTaint = "ToBeDeletedByClusterAutoscaler"

// SetNode stores the Node. It ignores other nodes.
func (m *Model) SetNode(o *corev1.Node) {
	m.stats.NodeEvents++
	if o.Name != m.cfg.NodeName {
		return
	}
	n, bad := m.parseNode(o)
	m.report.findings("Node", Key{Name: m.cfg.NodeName}, m.nodeFindings, bad)
	m.nodeFindings = bad
	if none := (Prefixes{}); equalPrefixes(&n.PodCIDRs, &none) && !equalPrefixes(&m.this.PodCIDRs, &none) {
		// A recreated Node has no podCIDRs at first; its pods keep their addresses.
		n.PodCIDRs, n.Kept = m.this.PodCIDRs, true
	}
	m.setNode(n)
}

// DeleteNode records the deletion. The node may still exist and keeps its addresses, zone and pod CIDRs.
func (m *Model) DeleteNode(name string) {
	m.stats.NodeEvents++
	if name != m.cfg.NodeName || !m.this.Known {
		return
	}
	n := m.this
	n.Leaving = true
	if !equalNode(n, m.this) {
		m.cfg.Logger.Warn("Node object is deleted: keeping its last addresses", "node", name)
		m.setNode(n)
	}
}

// NodeEligible reports whether load balancers may send new traffic. It does not wait for Refresh.
func (m *Model) NodeEligible() bool { return m.this.Known && !m.this.Leaving }

// Located reports whether a Node or endpoint has this node's name, or no endpoint has named a node.
func (m *Model) Located() bool {
	return m.this.Known || m.named.here || !m.named.elsewhere
}

// Services with hints depend on the zone, Services with source ranges on the address.
func (m *Model) setNode(n Node) {
	was := m.this
	m.this, m.lists.zone = n, n.Zone
	m.stats.Work++
	if n.Zone != was.Zone {
		m.stats.Work += uint64(len(m.slices))
		for _, s := range m.slices {
			if len(s.zones) > 0 {
				m.dirty[s.of] = struct{}{}
				s.of.merged = nil
			}
		}
	}
	if n.Addresses != was.Addresses {
		m.stats.Work += uint64(len(m.records))
		for _, r := range m.records {
			if s := r.parsed; s != nil && (s.ranges[IPv4] != nil || s.ranges[IPv6] != nil) {
				m.dirty[r] = struct{}{}
			}
		}
	}
}

func (m *Model) parseNode(o *corev1.Node) (Node, findings) {
	var bad findings
	n := Node{
		Known: true, Name: m.cfg.NodeName, Addresses: m.cfg.NodeAddresses,
		Leaving: o.DeletionTimestamp != nil || slices.ContainsFunc(o.Spec.Taints, func(t corev1.Taint) bool { return t.Key == DeletionTaint }),
	}
	for _, kind := range []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP} {
		for i, a := range o.Status.Addresses {
			if a.Type != kind {
				continue
			}
			addr, err := parseAddr(a.Address)
			if err != nil {
				bad.add(index("status.addresses", i)+".address", err)
				continue
			}
			if f := FamilyOf(addr); !n.Addresses[f].IsValid() {
				n.Addresses[f] = addr
			}
		}
	}
	n.PodCIDRs = parsePrefixes("spec.podCIDRs", o.Spec.PodCIDRs, &bad)
	if len(o.Spec.PodCIDRs) == 0 && o.Spec.PodCIDR != "" {
		n.PodCIDRs = parsePrefixes("spec.podCIDR", []string{o.Spec.PodCIDR}, &bad)
	}
	n.Zone = strings.Clone(o.Labels[corev1.LabelTopologyZone])
	return n, bad
}

func equalNode(a, b Node) bool {
	return a.Known == b.Known && a.Name == b.Name && a.Addresses == b.Addresses && equalPrefixes(&a.PodCIDRs, &b.PodCIDRs) &&
		a.Kept == b.Kept && a.Zone == b.Zone && a.Leaving == b.Leaving
}
