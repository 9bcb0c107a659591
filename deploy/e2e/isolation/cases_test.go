package isolation

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
)

// sample is a kind of packet between two ends.
type sample struct {
	site     *site
	from, to *end
	// kinds of addresses and of frames
	source, destination, frame string
	packet
}

// beyond reports whether the destination is not on the sender's link.
func (c *sample) beyond() bool {
	onLink := c.to == c.site.node || c.site.plugin == "bridged" && c.from.pod != nil && c.to.pod != nil
	return c.destination == own && !onLink
}

// discovery reports neighbour discovery, which must pass. Advertisements of routers and redirects are
// excluded: only the node sends them.
func (c *sample) discovery() bool {
	return c.protocol == solicits || c.protocol == neighbor || c.protocol == answer
}

func (c *sample) String() string {
	return fmt.Sprintf("%s: %s %s -> %s %s (%s -> %s), %s, %s frame", c.site.plugin, c.from.name, c.source, c.to.name, c.destination, c.src, c.dst, c.protocol.name, c.frame)
}

func (c *sample) family() int {
	if c.src.Is6() {
		return 1
	}
	return 0
}

// firstID is greater than sourcePort and than chance values of other packets.
const firstID = 1000

const (
	own       = "own"
	second    = "second"
	linkLocal = "link-local"
	multicast = "multicast"
	broadcast = "broadcast"
	loopback  = "loopback"
	none      = "none"
	ofPod     = "of a pod"
)

const (
	// plain frames go to the packet's receiver, its gateway, or a group.
	plain = "plain"
	// odd frames do not fit the packet: broadcast with a host's address, to a host with a group's
	// address.
	odd = "odd"
	// tagged and twice tagged frames have tags of the VLAN 0, which receivers ignore.
	tagged = "tagged"
	twice  = "twice tagged"
	// through frames go to the node, although the receiver is on the same bridge.
	through = "through"
)

// 802.1Q and 802.1ad
var tags = map[string][]byte{tagged: {0x81, 0, 0, 0}, twice: {0x88, 0xa8, 0, 0, 0x81, 0, 0, 0}}

type kind struct {
	name string
	addr netip.Addr
}

// The sources after link-local are forged.
func (s *site) sources(w *world, from, to *end, f int) []kind {
	out := []kind{{own, from.own[f]}, {second, from.second[f]}, {linkLocal, from.local[f]}}
	for _, k := range []kind{
		{ofPod, s.borrowed.own[f]}, {"of the receiver", to.own[f]}, {"of the node", s.node.own[f]}, {"of the outside", w.outside.own[f]},
		{loopback, []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}[f]},
		{none, []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()}[f]},
	} {
		if !slices.ContainsFunc(out, func(have kind) bool { return have.addr == k.addr }) {
			out = append(out, k)
		}
	}
	return out
}

// local is the receiver's link-local address for the sender.
func destinations(to *end, f int, local netip.Addr) []kind {
	out := []kind{{own, to.own[f]}, {second, to.second[f]}, {linkLocal, local}}
	if f == 0 {
		subnet := netip.PrefixFrom(to.own[0], 24).Masked().Addr()
		return append(out,
			kind{broadcast, netip.MustParseAddr("255.255.255.255")}, kind{broadcast, numbered(subnet, 255)},
			kind{multicast, netip.MustParseAddr("224.0.0.1")}, kind{multicast, netip.MustParseAddr("239.1.1.1")},
			kind{loopback, netip.MustParseAddr("127.0.0.1")})
	}
	b := local.As16()
	solicited := netip.MustParseAddr("ff02::1:ff00:0").As16()
	copy(solicited[13:], b[13:])
	return append(out,
		kind{multicast, netip.MustParseAddr("ff02::1")}, kind{multicast, netip.MustParseAddr("ff02::2")}, kind{multicast, netip.AddrFrom16(solicited)},
		kind{multicast, netip.MustParseAddr("ff0e::1:1")}, kind{loopback, netip.IPv6Loopback()})
}

// group reports an address of several hosts.
func group(k kind) bool { return k.name == multicast || k.name == broadcast }

// groupMAC is a group's Ethernet address.
func groupMAC(k kind) net.HardwareAddr {
	b := k.addr.AsSlice()
	switch {
	case k.name != multicast:
		return net.HardwareAddr{255, 255, 255, 255, 255, 255}
	case len(b) == 4:
		return net.HardwareAddr{1, 0, 0x5e, b[1] & 127, b[2], b[3]}
	}
	return append(net.HardwareAddr{0x33, 0x33}, b[12:]...)
}

func (w *world) cases(t *testing.T) []*sample {
	t.Helper()
	var all []*sample
	for _, s := range w.sites {
		for _, pair := range [][2]*end{
			{s.isolated, s.free}, {s.isolated, s.node}, {s.isolated, w.outside},
			{s.free, s.isolated}, {s.free, s.peer}, {s.free, s.node}, {s.free, w.outside},
			{w.outside, s.isolated}, {w.outside, s.free}, {w.outside, s.node},
		} {
			for f := range 2 {
				all = append(all, w.pairCases(t, s, pair[0], pair[1], f)...)
			}
		}
	}
	if firstID+len(all) > 1<<16 {
		t.Fatalf("%d cases are too many for numbers of 16 bits", len(all))
	}
	for i, c := range all {
		c.id = uint16(firstID + i)
	}
	return all
}

// pairCases returns the combinations of a sender, a receiver and a family.
func (w *world) pairCases(t *testing.T, s *site, from, receiver *end, f int) []*sample {
	gateway, local := s.gateway(t, from)
	onBridge := s.plugin == "bridged" && from.pod != nil && receiver.pod != nil
	host := gateway.HardwareAddr
	if onBridge {
		host = receiver.device.HardwareAddr
	}
	if f == 0 || receiver != s.node {
		local = receiver.local[f]
	}
	var all []*sample
	for _, src := range s.sources(w, from, receiver, f) {
		for _, dst := range destinations(receiver, f, local) {
			mac, mismatched := host, net.HardwareAddr{255, 255, 255, 255, 255, 255}
			frames := []string{plain, odd, tagged, twice}
			if group(dst) {
				mac, mismatched = groupMAC(dst), host
			} else if onBridge {
				frames = append(frames, through)
			}
			macs := map[string]net.HardwareAddr{odd: mismatched, through: gateway.HardwareAddr}
			for _, frame := range frames {
				to, ok := macs[frame]
				if !ok {
					to = mac
				}
				for _, p := range carried(f, src, dst, frame) {
					all = append(all, &sample{
						site: s, from: from, to: receiver, source: src.name, destination: dst.name, frame: frame,
						packet: packet{from: from.device.HardwareAddr, to: to, tags: tags[frame], src: src.addr, dst: dst.addr, protocol: p},
					})
				}
			}
		}
	}
	return all
}

// Neighbour discovery is not sent with another host's address, nor in frames that no host sends,
// because it need not arrive then.
func carried(f int, src, dst kind, frame string) []protocol {
	if frame == twice {
		return []protocol{udp}
	}
	out := []protocol{tcp, udp, ping}
	if f == 1 {
		out[2] = ping6
	}
	if frame == plain {
		out = append(out, sctp)
	}
	if f == 1 && frame == plain {
		out = append(out, far, router, redirect)
		if (src.name == own || src.name == linkLocal || src.name == none) && dst.name != loopback && dst.name != second {
			out = append(out, solicits, neighbor, answer)
		}
	}
	return out
}
