package services

import (
	"fmt"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
)

// check rejects a configuration for only an IP family that the node does not have,
// because it would have no effect (rule 100).
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

// unknownPods is the effect if no flow is recognized as coming from a pod.
const unknownPods = "flows to ClusterIPs are not masqueraded, and pods reach only the local endpoints of Services with externalTrafficPolicy Local"

// warnDetect logs when flows from pods are not recognized.
func (c *Config) warnDetect() {
	switch c.Detect.Mode {
	case render.DetectNode:
		c.Logger.Info("flows from pods are recognized by the podCIDRs of the Node object, which may appear and change at any time")
	case render.DetectCIDRs:
		// A cluster with one family has CIDRs of one, which is not a mistake.
		if len(c.Detect.CIDRs) == 0 {
			c.Logger.Warn("no addresses of pods are configured: " + unknownPods)
		}
	case render.DetectInterface, render.DetectInterfacePrefix:
		c.Logger.Info("flows from pods are recognized by their interface: flows from this node itself are not flows from pods")
	default:
		c.Logger.Warn("unknown mode of recognizing flows from pods: "+unknownPods, "mode", c.Detect.Mode)
	}
}

// warnNode logs what the Node object lacks, and what this node cannot use of it.
func (c *Config) warnNode(n *model.Node, have [model.NumFamilies]bool) {
	if n == nil || !n.Known {
		return
	}
	if c.Detect.Mode == render.DetectNode && len(n.PodCIDRs[model.IPv4])+len(n.PodCIDRs[model.IPv6]) == 0 {
		c.Logger.Warn("the node has no podCIDRs yet: until then, "+unknownPods, "node", n.Name)
	}
	for f, a := range n.Addresses {
		if a.IsValid() && !have[f] && !n.Addresses[1-f].IsValid() {
			c.Logger.Error(fmt.Sprintf("the node's only address is of %s, which this node does not have: no Service of that family works here", model.Family(f)),
				"node", n.Name, "address", a)
		}
	}
}
