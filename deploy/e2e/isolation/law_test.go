package isolation

import (
	"net/netip"
	"slices"
)

type verdict int

const (
	must verdict = iota
	may
	mustNot
)

// law is the verdict on the case at an end; without reports its arrival without weft.
func (c *sample) law(at *end, without bool) verdict {
	discovery := c.discovery() && !c.beyond()
	switch {
	case discovery && without:
		return must
	case discovery:
		return may
	case !without || c.from == c.site.isolated:
		return mustNot
	case at == c.site.isolated:
		if c.protocol == router || c.protocol == redirect {
			return may // an isolated pod also has a router
		}
		return mustNot
	case c.site.isolated.has(c.src) || c.site.isolated.has(c.dst):
		return may // others see it by forging the source or by flooding
	}
	return must
}

func (e *end) has(a netip.Addr) bool {
	return slices.Contains(e.own[:], a) || slices.Contains(e.second[:], a) || slices.Contains(e.local[:], a)
}

// The rows of the table, in order.
var rows = []string{
	rowPod, rowNode, rowOutside, rowSecond, rowLocal, rowForgedPod, rowForged, rowNone, rowEstablished, rowBroadcast, rowMulticast, rowLoopback,
	rowOdd, rowTagged, rowRouters, rowFar, rowDiscovery, rowARP, rowOpen,
}

const (
	rowPod         = "the pod's address, another pod"
	rowNode        = "the pod's address, its node"
	rowOutside     = "the pod's address, out of the node"
	rowSecond      = "an address that the pod's status does not show"
	rowLocal       = "a link-local address: `fe80::/10`, `169.254.0.0/16`"
	rowForgedPod   = "forged: the source is another pod's address"
	rowForged      = "forged: the source is an address of the node, of outside, or of the receiver"
	rowNone        = "forged: no source (`0.0.0.0`, `::`), or loopback"
	rowEstablished = "forged: a packet of a connection that others have"
	rowBroadcast   = "broadcast, of all networks and of one"
	rowMulticast   = "multicast"
	rowLoopback    = "to loopback"
	rowOdd         = "to a host in a broadcast frame, to a group in a frame to a host"
	rowTagged      = "frames with tags of the VLAN 0"
	rowRouters     = "router advertisements and redirects"
	rowFar         = "neighbour discovery beyond the link, or with a hop limit below 255"
	rowDiscovery   = "neighbour discovery"
	rowARP         = "ARP"
	rowOpen        = "connections that were open before the policy, over each address"
)

func (c *sample) row() string {
	switch {
	case c.protocol == router || c.protocol == redirect:
		return rowRouters
	case c.protocol == far || c.discovery() && c.beyond():
		return rowFar
	case c.discovery():
		return rowDiscovery
	case c.source == linkLocal || c.destination == linkLocal:
		return rowLocal
	case c.source == second || c.destination == second:
		return rowSecond
	case c.frame == tagged || c.frame == twice:
		return rowTagged
	case c.frame == odd:
		return rowOdd
	case c.destination == multicast:
		return rowMulticast
	case c.destination == broadcast:
		return rowBroadcast
	case c.destination == loopback:
		return rowLoopback
	case c.source == ofPod:
		return rowForgedPod
	case c.source == none || c.source == loopback:
		return rowNone
	case c.source != own:
		return rowForged
	case c.other().pod != nil:
		return rowPod
	case c.other() == c.site.node:
		return rowNode
	}
	return rowOutside
}

// other is the end that is not the isolated pod.
func (c *sample) other() *end {
	if c.to == c.site.isolated {
		return c.from
	}
	return c.to
}
