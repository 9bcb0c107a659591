package lab

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// Addresses holds one address of each family.
type Addresses struct{ V4, V6 netip.Addr }

// All returns the set addresses, IPv4 first.
func (a Addresses) All() []netip.Addr {
	var all []netip.Addr
	for _, addr := range []netip.Addr{a.V4, a.V6} {
		if addr.IsValid() {
			all = append(all, addr)
		}
	}
	return all
}

type Lab struct {
	// Control has this process and the API server.
	Control *Host
	// Outside is a host on the nodes' link. It routes Routed to the first node.
	Outside *Host
	Nodes   []*Node

	pods     []*Pod
	podCIDRs []netip.Prefix
	links    []string
}

// Host is a namespace with addresses on the nodes' link.
type Host struct {
	*Namespace
	Addresses Addresses
}

// Node is a host with pods.
type Node struct {
	Host
	// IPv4 first
	PodCIDRs []netip.Prefix

	lab    *Lab
	number int
	pods   int
}

// Config is the size of the network.
type Config struct {
	Nodes int // 1 to 9
	// Routed are the prefixes of Services that Outside routes to the first node.
	Routed []netip.Prefix
	// PodCIDRs are the prefixes of all pods, IPv4 (/16) before IPv6 (/48); by default ClusterCIDRs.
	PodCIDRs []netip.Prefix
}

// ClusterCIDRs are the prefixes of all pods, IPv4 first.
func ClusterCIDRs() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00:10:244::/48")}
}

// Uplink is the link of a pod, a node or an outside host to the rest of the network.
const Uplink = "eth0"

const (
	underlay = "underlay" // the bridge in Control
	uplink   = Uplink
)

// New makes the network. The process must be in a private namespace, which becomes Control.
func New(cfg Config) (*Lab, error) {
	if cfg.Nodes < 1 || cfg.Nodes > 9 {
		return nil, fmt.Errorf("make lab: %d nodes, want 1 to 9", cfg.Nodes)
	}
	l := &Lab{podCIDRs: cfg.PodCIDRs}
	if l.podCIDRs == nil {
		l.podCIDRs = ClusterCIDRs()
	}
	if err := l.build(cfg); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func (l *Lab) build(cfg Config) error {
	control, err := CurrentNamespace("control")
	if err != nil {
		return err
	}
	l.Control = &Host{Namespace: control, Addresses: underlayAddresses(1)}
	if err := errors.Join(control.bridge(underlay), l.Control.address(underlay)); err != nil {
		return err
	}
	l.links = append(l.links, underlay)
	if err := l.prepareExternal(); err != nil {
		return err
	}
	if l.Outside, err = l.attach("outside", 100); err != nil {
		return err
	}
	for i := 1; i <= cfg.Nodes; i++ {
		h, err := l.attach(fmt.Sprintf("node-%d", i), 10+i)
		if err != nil {
			return err
		}
		l.Nodes = append(l.Nodes, &Node{Host: *h, PodCIDRs: l.podCIDRsOf(i), lab: l, number: i})
	}
	return l.route(cfg.Routed)
}

func (l *Lab) route(routed []netip.Prefix) error {
	var errs []error
	for _, n := range l.Nodes {
		for _, p := range n.PodCIDRs {
			gw := n.Addresses.of(p)
			errs = append(errs, l.Control.addRoute(underlay, p, gw), l.Outside.addRoute(uplink, p, gw))
			for _, other := range l.Nodes {
				if other != n {
					errs = append(errs, other.addRoute(uplink, p, gw))
				}
			}
		}
		// Without a default route, a node's process cannot reach an address that only a rule rewrites,
		// such as a ClusterIP.
		for _, gw := range l.Control.Addresses.All() {
			errs = append(errs, n.addRoute(uplink, everything(gw), gw))
		}
	}
	for _, p := range routed {
		errs = append(errs, l.Outside.addRoute(uplink, p, l.Nodes[0].Addresses.of(p)))
	}
	return errors.Join(errs...)
}

func (l *Lab) attach(name string, number int) (*Host, error) {
	ns, err := NewNamespace(name)
	if err != nil {
		return nil, err
	}
	h := &Host{Namespace: ns, Addresses: underlayAddresses(number)}
	port := "to-" + name
	if err := veth(l.Control.Namespace, port, ns, uplink); err != nil {
		return nil, err
	}
	l.links = append(l.links, port)
	if err := l.Control.enslave(port, underlay); err != nil {
		return nil, err
	}
	return h, h.address(uplink)
}

func (h *Host) address(link string) error {
	return errors.Join(h.addAddress(link, netip.PrefixFrom(h.Addresses.V4, 24)), h.addAddress(link, netip.PrefixFrom(h.Addresses.V6, 64)))
}

// Close stops all servers, removes the nodes' link from Control, and releases all namespaces.
func (l *Lab) Close() {
	for _, p := range l.pods {
		p.Stop()
	}
	for i := len(l.links) - 1; i >= 0; i-- {
		// The link ends with the other end's namespace.
		_ = l.Control.delLink(l.links[i])
	}
	for _, n := range l.Nodes {
		n.Close()
	}
	for _, h := range []*Host{l.Outside, l.Control} {
		if h != nil {
			h.Close()
		}
	}
}

func (a Addresses) of(p netip.Prefix) netip.Addr {
	if p.Addr().Is4() {
		return a.V4
	}
	return a.V6
}

func everything(a netip.Addr) netip.Prefix {
	return netip.PrefixFrom(Addresses{netip.IPv4Unspecified(), netip.IPv6Unspecified()}.of(host(a)), 0)
}

func underlayAddresses(n int) Addresses {
	return Addresses{
		V4: netip.AddrFrom4([4]byte{192, 168, 200, byte(n)}),
		V6: netip.MustParseAddr(fmt.Sprintf("fd00:200::%x", n)),
	}
}

func (l *Lab) podCIDRsOf(node int) []netip.Prefix {
	v4, v6 := l.podCIDRs[0].Addr().As4(), l.podCIDRs[1].Addr().As16()
	v4[2], v6[7] = byte(node), byte(node)
	return []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4(v4), 24), netip.PrefixFrom(netip.AddrFrom16(v6), 64)}
}

func (l *Lab) podAddresses(node, pod int) Addresses {
	cidrs := l.podCIDRsOf(node)
	v4, v6 := cidrs[0].Addr().As4(), cidrs[1].Addr().As16()
	v4[3], v6[15] = byte(pod), byte(pod)
	return Addresses{V4: netip.AddrFrom4(v4), V6: netip.AddrFrom16(v6)}
}

// Join is a list for a command line.
func Join[T fmt.Stringer](all []T) string {
	var text []string
	for _, one := range all {
		text = append(text, one.String())
	}
	return strings.Join(text, ",")
}
