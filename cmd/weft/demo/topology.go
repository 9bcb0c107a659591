package demo

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// The cluster's numbers. Nothing of them is seen outside of the demo's own
// namespaces.
const (
	clusterCIDR  = "10.1.0.0/16"
	clusterCIDR6 = "fd00:1::/48"
)

// place is an address in both families.
type place struct{ V4, V6 netip.Addr }

func at(v4, v6 string) place {
	return place{netip.MustParseAddr(v4), netip.MustParseAddr(v6)}
}

// all returns the addresses that the kernel can have.
func (p place) all() []netip.Addr {
	if hasIPv6() {
		return []netip.Addr{p.V4, p.V6}
	}
	return []netip.Addr{p.V4}
}

// hosts returns the addresses, each as a prefix of its own.
func (p place) hosts() []netip.Prefix {
	var out []netip.Prefix
	for _, a := range p.all() {
		out = append(out, netip.PrefixFrom(a, a.BitLen()))
	}
	return out
}

// of returns the address of the family of another one.
func (p place) of(addr netip.Addr) netip.Addr {
	if addr.Is4() {
		return p.V4
	}
	return p.V6
}

// node is a machine of the cluster.
type node struct {
	*namespace
	place
	// gateway is the address that pods send everything to, pods the prefixes
	// of their addresses.
	gateway place
	pods    [2]netip.Prefix
	weft    *weft
}

// pod is a namespace behind a node.
type pod struct {
	*namespace
	place
	node *node
	// serves is true for the pods with servers, the backends of Services.
	serves bool
}

// cluster is everything in the demo that has an address.
type cluster struct {
	nodes []*node
	pods  []*pod
	// client is outside: no node takes its address for one of a pod.
	client *pod
}

// newCluster makes the namespaces and joins them.
func newCluster() (*cluster, error) {
	c := &cluster{
		nodes: []*node{
			{place: at("172.18.0.1", "fd00:18::1"), gateway: at("10.1.1.1", "fd00:1:0:1::1"),
				pods: [2]netip.Prefix{netip.MustParsePrefix("10.1.1.0/24"), netip.MustParsePrefix("fd00:1:0:1::/64")}},
			{place: at("172.18.0.2", "fd00:18::2"), gateway: at("10.1.2.1", "fd00:1:0:2::1"),
				pods: [2]netip.Prefix{netip.MustParsePrefix("10.1.2.0/24"), netip.MustParsePrefix("fd00:1:0:2::/64")}},
		},
		client: &pod{place: at("192.0.2.100", "2001:db8::100")},
	}
	one, two := c.nodes[0], c.nodes[1]
	c.pods = []*pod{
		{node: one, place: at("10.1.1.11", "fd00:1:0:1::11"), serves: true},
		{node: one, place: at("10.1.1.12", "fd00:1:0:1::12"), serves: true},
		{node: two, place: at("10.1.2.11", "fd00:1:0:2::11"), serves: true},
		{node: one, place: at("10.1.1.20", "fd00:1:0:1::20")},
		{node: one, place: at("10.1.1.21", "fd00:1:0:1::21")},
		{node: one, place: at("10.1.1.22", "fd00:1:0:1::22")},
	}
	return c, c.build()
}

// build makes the namespaces and joins them, in the order that routes depend
// on.
func (c *cluster) build() error {
	if err := c.makeNamespaces(); err != nil {
		return err
	}
	if err := c.connectNodes(); err != nil {
		return err
	}
	for _, p := range c.pods {
		if err := p.connect(); err != nil {
			return err
		}
	}
	for _, n := range c.nodes {
		if err := c.connectClient(n); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) makeNamespaces() (err error) {
	for i, n := range c.nodes {
		if n.namespace, err = newNamespace(fmt.Sprintf("node-%d", i+1)); err != nil {
			return err
		}
		if err := n.sysctl(map[string]string{
			"ipv4/ip_forward":                  "1",
			"ipv6/conf/all/forwarding":         "1",
			"ipv4/conf/all/send_redirects":     "0",
			"ipv4/conf/default/send_redirects": "0",
			"ipv4/conf/all/rp_filter":          "0",
			"ipv4/conf/default/rp_filter":      "0",
		}); err != nil {
			return err
		}
	}
	for i, name := range []string{"web-1", "web-2", "web-3", "app", "shell-1", "shell-2"} {
		if c.pods[i].namespace, err = newNamespace(name); err != nil {
			return err
		}
	}
	c.client.namespace, err = newNamespace("client")
	return err
}

// connectNodes joins the two nodes by a link, over which each reaches the
// other's pods.
func (c *cluster) connectNodes() error {
	one, two := c.nodes[0], c.nodes[1]
	if err := join(end{one.namespace, "node0", one.hosts()}, end{two.namespace, "node0", two.hosts()}); err != nil {
		return err
	}
	for _, pair := range [][2]*node{{one, two}, {two, one}} {
		from, to := pair[0], pair[1]
		for i, addr := range to.all() {
			if err := errors.Join(
				from.route(netip.PrefixFrom(addr, addr.BitLen()), "node0", netip.Addr{}),
				from.route(to.pods[i], "node0", addr),
			); err != nil {
				return err
			}
		}
	}
	return nil
}

// connect joins a pod to its node: the pod has its own address and sends
// everything to the gateway, which sits on the node's end of every pod's link.
func (p *pod) connect() error {
	link := "veth-" + p.name
	if err := join(end{p.namespace, "eth0", p.hosts()}, end{p.node.namespace, link, p.node.gateway.hosts()}); err != nil {
		return err
	}
	for _, addr := range p.all() {
		if err := errors.Join(
			p.node.route(netip.PrefixFrom(addr, addr.BitLen()), link, netip.Addr{}),
			p.route(netip.PrefixFrom(zero(addr), 0), "eth0", p.node.gateway.of(addr)),
		); err != nil {
			return err
		}
	}
	return nil
}

// connectClient joins the client to a node by a link of their own, which is
// also the node's way to everywhere else: without one the node would answer for
// itself to what is sent to an address of no machine, such as that of a
// Service without endpoints.
func (c *cluster) connectClient(n *node) error {
	link := "veth-" + n.name
	if err := join(end{c.client.namespace, link, c.client.hosts()}, end{n.namespace, "world", nil}); err != nil {
		return err
	}
	for _, addr := range c.client.all() {
		own := n.of(addr)
		if err := errors.Join(
			n.route(netip.PrefixFrom(zero(addr), 0), "world", addr),
			c.client.route(netip.PrefixFrom(own, own.BitLen()), link, netip.Addr{}),
		); err != nil {
			return err
		}
	}
	return nil
}

// zero returns the unspecified address of the family of another one.
func zero(addr netip.Addr) netip.Addr {
	if addr.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// pod returns the pod of a name, which is one of newCluster's.
func (c *cluster) pod(name string) *pod {
	i := slices.IndexFunc(c.pods, func(p *pod) bool { return p.name == name })
	return c.pods[i]
}

// servers returns the pods that Services lead to.
func (c *cluster) servers() []*pod {
	return slices.DeleteFunc(slices.Clone(c.pods), func(p *pod) bool { return !p.serves })
}

// awaitIPv6 waits until the servers answer at their own addresses: the kernel
// adds the routes of IPv6 addresses in the background.
func (c *cluster) awaitIPv6(ctx context.Context) error {
	for _, p := range c.servers() {
		if err := await(ctx, askTimeout, func(ctx context.Context) error {
			_, err := c.pod("app").askWithin(ctx, 100*time.Millisecond, "udp", netip.AddrPortFrom(p.V6, serverUDP))
			return err
		}); err != nil {
			return fmt.Errorf("ask %s at its own address: %w", p.name, err)
		}
	}
	return nil
}

// close removes the namespaces; their processes must have ended.
func (c *cluster) close() error {
	var errs []error
	for _, n := range c.nodes {
		if n.namespace != nil {
			errs = append(errs, n.namespace.close())
		}
	}
	for _, p := range append(slices.Clone(c.pods), c.client) {
		if p.namespace != nil {
			errs = append(errs, p.namespace.close())
		}
	}
	return errors.Join(errs...)
}
