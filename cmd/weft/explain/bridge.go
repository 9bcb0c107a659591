package explain

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/eval"
)

// ownSource is why a pod drops a packet that a Service sends back to it, empty if it does not. A
// kernel drops packets from its own addresses, so the rules masquerade the packet, but only if they
// know that the endpoint is on this node.
func (w *Way) ownSource() string {
	if w.Out == "" || w.From.Addr() != w.To.Addr() {
		return ""
	}
	return fmt.Sprintf("it comes back to its pod with the pod's own address as source, and the pod drops it: the EndpointSlice does not say that endpoint %s is on this node, so the packet is not masqueraded; set nodeName of the endpoint", w.To)
}

// noHairpin is why a bridge does not send a packet back to the pod that sent it, empty if it does,
// or if that is not known. The packet came in through a port of the bridge, and a Service's rule gave
// it the address of its own pod.
//
// With br_netfilter the bridge looks for that address itself after the translation, and it sends
// nothing through the port that a packet came from unless the port is in hairpin mode. Without
// br_netfilter the node routes the packet, and the bridge takes it for one of the node.
func (h *host) noHairpin(in, out eval.Interface, pod netip.Addr) string {
	if in.Index == 0 || in != out || !bridgeFilter(pod) {
		return ""
	}
	bridge, err := netlink.LinkByIndex(int(in.Index))
	if err != nil || bridge.Type() != "bridge" {
		return ""
	}
	port, err := bridgePort(bridge.Attrs().Index, pod)
	if err != nil || port == nil {
		return ""
	}
	info, err := netlink.LinkGetProtinfo(port)
	if err != nil || info.Hairpin {
		return ""
	}
	name := port.Attrs().Name
	return fmt.Sprintf("bridge %s does not send it back through %s, the port that it came from: hairpin mode is off (`bridge link set dev %s hairpin on`)", in.Name, name, name)
}

// bridgeFilter reports whether packets from port to port of a bridge pass the rules of the family
// of an address.
func bridgeFilter(addr netip.Addr) bool {
	setting := "/proc/sys/net/bridge/bridge-nf-call-iptables"
	if addr.Is6() {
		setting = "/proc/sys/net/bridge/bridge-nf-call-ip6tables"
	}
	b, err := os.ReadFile(setting)
	return err == nil && strings.TrimSpace(string(b)) == "1"
}

// bridgePort returns the port of a bridge through which an address is reached, nil if the bridge does not know it.
func bridgePort(bridge int, addr netip.Addr) (netlink.Link, error) {
	family := netlink.FAMILY_V4
	if addr.Is6() {
		family = netlink.FAMILY_V6
	}
	neighbours, err := netlink.NeighList(bridge, family)
	if err != nil {
		return nil, err
	}
	for _, n := range neighbours {
		if !n.IP.Equal(addr.AsSlice()) || len(n.HardwareAddr) == 0 {
			continue
		}
		entries, err := netlink.NeighList(0, unix.AF_BRIDGE)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.MasterIndex == bridge && bytes.Equal(e.HardwareAddr, n.HardwareAddr) {
				return netlink.LinkByIndex(e.LinkIndex)
			}
		}
	}
	return nil, nil //nolint:nilnil // see above
}
