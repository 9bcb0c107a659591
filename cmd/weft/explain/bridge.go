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

// ownSource returns why a pod drops a packet from its own address, or empty. The rules masquerade
// only for endpoints known to be on this node.
func (w *Way) ownSource() string {
	if w.Out == "" || w.From.Addr() != w.To.Addr() {
		return ""
	}
	return fmt.Sprintf("it comes back to its pod with the pod's own address as source, and the pod drops it: the EndpointSlice does not say that endpoint %s is on this node, so the packet is not masqueraded; set nodeName of the endpoint", w.To)
}

// noHairpin returns why a bridge does not send a packet back to its pod, or empty.
//
// With br_netfilter the bridge sends a packet back through its port of arrival only in hairpin
// mode. Without br_netfilter the node routes the packet.
func (h *host) noHairpin(in, out eval.Interface, pod netip.Addr) string {
	port, _ := h.port(in, pod)
	if in != out || port.Index == 0 || !bridgeFilter(pod) {
		return ""
	}
	link, err := netlink.LinkByIndex(int(port.Index))
	if err != nil {
		return ""
	}
	info, err := netlink.LinkGetProtinfo(link)
	if err != nil || info.Hairpin {
		return ""
	}
	return fmt.Sprintf("bridge %s does not send it back through %s, the port that it came from: hairpin mode is off (`bridge link set dev %s hairpin on`)", in.Name, port.Name, port.Name)
}

// bridgeFilter reports whether rules of addr's family filter packets between ports of a bridge.
func bridgeFilter(addr netip.Addr) bool {
	setting := "/proc/sys/net/bridge/bridge-nf-call-iptables"
	if addr.Is6() {
		setting = "/proc/sys/net/bridge/bridge-nf-call-ip6tables"
	}
	b, err := os.ReadFile(setting)
	return err == nil && strings.TrimSpace(string(b)) == "1"
}

// port is unknown until the node and the bridge have met the address, or its router.
func (h *host) port(bridge eval.Interface, addr netip.Addr) (port eval.Interface, ok bool) {
	l, err := netlink.LinkByIndex(int(bridge.Index))
	if err != nil || l.Type() != "bridge" {
		return eval.Interface{}, err == nil
	}
	if router := h.router(netip.Addr{}, addr, eval.Interface{}, 0); router.IsValid() {
		addr = router
	}
	neighbours, _ := netlink.NeighList(int(bridge.Index), netlink.FAMILY_ALL)
	entries, _ := netlink.NeighList(0, unix.AF_BRIDGE)
	for _, n := range neighbours {
		for _, e := range entries {
			if n.IP.Equal(addr.AsSlice()) && len(n.HardwareAddr) > 0 && e.MasterIndex == int(bridge.Index) && bytes.Equal(e.HardwareAddr, n.HardwareAddr) {
				port, err := h.link(e.LinkIndex)
				return port, err == nil
			}
		}
	}
	return eval.Interface{}, false
}
