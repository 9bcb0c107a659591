package services

import (
	"fmt"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
)

// check refuses a configuration for an IP family that the node does not have, as
// nothing of it would have an effect (rule 100).
func (c *Config) check(have [model.Families]bool) error {
	for f, a := range c.NodeAddresses {
		if a.IsValid() && !have[f] && !c.NodeAddresses[1-f].IsValid() {
			return fmt.Errorf("the node's address is %s, and this node has no %s", a, model.Family(f))
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
	return fmt.Errorf("the addresses of pods are %s, and this node does not have their IP family", c.Detect.CIDRs)
}

// unknownPods is what follows where no flow is known to come from a pod.
const unknownPods = "flows to ClusterIPs are not masqueraded, and pods reach only the local endpoints of Services with externalTrafficPolicy Local"

// warnDetect says where flows from pods will not be known.
func (c *Config) warnDetect() {
	switch c.Detect.Mode {
	case render.DetectNode:
		c.Logger.Info("flows from pods are known by the podCIDRs of the Node object: they count as they come and change, nothing waits for them")
	case render.DetectCIDRs:
		// A cluster of one family has CIDRs of one: that is no mistake.
		if len(c.Detect.CIDRs) == 0 {
			c.Logger.Warn("no addresses of pods are given: " + unknownPods)
		}
	case render.DetectInterface, render.DetectInterfacePrefix:
		c.Logger.Info("flows from pods are known by their interface: flows from this node itself count as from elsewhere")
	default:
		c.Logger.Warn("the way to know flows from pods is unknown: "+unknownPods, "mode", c.Detect.Mode)
	}
}

// warnNode logs what the Node object lacks, or has and this node cannot use.
func (c *Config) warnNode(n *model.Node, have [model.Families]bool) {
	if n == nil || !n.Known {
		return
	}
	if c.Detect.Mode == render.DetectNode && len(n.PodCIDRs[model.IPv4])+len(n.PodCIDRs[model.IPv6]) == 0 {
		c.Logger.Warn("the node has no podCIDRs yet: until it has, "+unknownPods, "node", n.Name)
	}
	for f, a := range n.Addresses {
		if a.IsValid() && !have[f] && !n.Addresses[1-f].IsValid() {
			c.Logger.Error(fmt.Sprintf("the node's only address is one of %s, which this node does not have: no Service of that family works here", model.Family(f)),
				"node", n.Name, "address", a)
		}
	}
}
