package model

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// Located returns an error if policies exist, but no Node or pod has the name of this node.
func (m *Model) Located() error {
	if m.node != nil || len(m.locals) > 0 || len(m.policies.byID) == 0 {
		return nil
	}
	return fmt.Errorf("no Node and no pod has the name of this node, %q, so no policy applies here: compare it with `kubectl get nodes`, and give the right one (--hostname-override)", m.nodeName)
}

// Outside returns an error if a local pod has an address outside Node.PodCIDRs.
func (m *Model) Outside() error {
	if m.node == nil || len(m.node.node.PodCIDRs) == 0 {
		return errors.New("the Node has no podCIDRs: let the cluster allocate them (--allocate-node-cidrs of kube-controller-manager), or use --policy-nri-socket")
	}
	var first *pod
	var at netip.Addr
	for _, p := range m.locals {
		for _, a := range p.addresses() {
			inside := slices.ContainsFunc(m.node.node.PodCIDRs, func(c netip.Prefix) bool { return c.Contains(a) })
			if !inside && (first == nil || p.name.String() < first.name.String()) {
				first, at = p, a
			}
		}
	}
	if first == nil {
		return nil
	}
	return fmt.Errorf("the pod %s has the address %s, which is not in the Node's podCIDRs %s: use --policy-nri-socket", first.name, at, m.node.node.PodCIDRs)
}
