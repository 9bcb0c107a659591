package services

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
)

// check implements rule 100.
func (c *Config) check(have [model.NumFamilies]bool) error {
	for f, a := range c.NodeAddresses {
		if a.IsValid() && !have[f] && !c.NodeAddresses[1-f].IsValid() {
			return fmt.Errorf("the node's address is %s, but this node does not have %s", a, model.Family(f))
		}
	}
	if c.Detect.Mode != render.DetectCIDRs || len(c.Detect.CIDRs) == 0 {
		return nil
	}
	for _, p := range c.Detect.CIDRs {
		if have[model.FamilyOf(p.Addr())] {
			return nil
		}
	}
	return fmt.Errorf("the addresses of pods are %s, but this node does not have their IP family", c.Detect.CIDRs)
}

const unknownPods = "flows to ClusterIPs are not masqueraded, and pods reach only the local endpoints of Services with externalTrafficPolicy Local"

func (c *Config) warnDetect() {
	switch c.Detect.Mode {
	case render.DetectNode:
		c.Logger.Info("flows from pods are recognized by the podCIDRs of the Node object, which may appear and change at any time")
	case render.DetectCIDRs:
		// CIDRs for one family are correct in a single-family cluster.
		if len(c.Detect.CIDRs) == 0 {
			c.Logger.Warn("no addresses of pods are configured: " + unknownPods)
		}
	case render.DetectInterface, render.DetectInterfacePrefix:
		c.Logger.Info("flows from pods are recognized by their interface: flows from this node itself are not flows from pods")
	default:
		c.Logger.Warn("unknown mode of recognizing flows from pods: "+unknownPods, "mode", c.Detect.Mode)
	}
}

// checkNode returns nil for an unknown Node.
func (c *Config) checkNode(n *model.Node, have [model.NumFamilies]bool) error {
	if n == nil || !n.Known {
		return nil
	}
	for f, a := range n.Addresses {
		if a.IsValid() && !have[f] && !n.Addresses[1-f].IsValid() {
			return fmt.Errorf("the node's only address is %s, but it does not have %s: no Service of that family works here", a, model.Family(f))
		}
	}
	pods := slices.Concat(n.PodCIDRs[model.IPv4], n.PodCIDRs[model.IPv6])
	if c.Detect.Mode == render.DetectNode && len(pods) == 0 {
		return errors.New("the node has no podCIDRs yet: until then, " + unknownPods)
	}
	if c.Detect.Mode == render.DetectNode && n.Kept {
		return fmt.Errorf("the node has no podCIDRs any more: until it has, flows from pods are recognized by those that it had, %s", pods)
	}
	if c.Detect.Mode != render.DetectCIDRs || len(c.Detect.CIDRs) == 0 {
		return nil
	}
	for _, p := range pods {
		inside := func(cluster netip.Prefix) bool { return cluster.Bits() <= p.Bits() && cluster.Contains(p.Addr()) }
		if have[model.FamilyOf(p.Addr())] && !slices.ContainsFunc(c.Detect.CIDRs, inside) {
			return fmt.Errorf("the node's podCIDR %s is not in the cluster CIDR %s: its pods count as clients from outside the cluster", p, c.Detect.CIDRs)
		}
	}
	return nil
}

func (f *Frontend) noteNode(n *model.Node) {
	if n == nil {
		return
	}
	err := f.cfg.checkNode(n, f.have)
	f.mu.Lock()
	f.node = err
	f.mu.Unlock()
	if err != nil {
		f.cfg.Logger.Warn("the Node object does not fit this node", "node", n.Name, "error", err)
	}
}
