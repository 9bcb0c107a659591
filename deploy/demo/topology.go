package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/nft/testing/nfttest/netns"
)

// The pods' addresses are visible only in the demo's namespaces.
const (
	clusterCIDR  = "10.1.0.0/16"
	clusterCIDR6 = "fd00:1::/48"
)

type place struct{ V4, V6 netip.Addr }

func at(v4, v6 string) place {
	return place{netip.MustParseAddr(v4), netip.MustParseAddr(v6)}
}

func (p place) all() []netip.Addr {
	if hasIPv6() {
		return []netip.Addr{p.V4, p.V6}
	}
	return []netip.Addr{p.V4}
}

func (p place) hosts() []netip.Prefix { return cli.Map(p.all(), host) }

func (p place) of(addr netip.Addr) netip.Addr {
	if addr.Is4() {
		return p.V4
	}
	return p.V6
}

func host(addr netip.Addr) netip.Prefix { return netip.PrefixFrom(addr, addr.BitLen()) }

func zero(addr netip.Addr) netip.Addr {
	return place{netip.IPv4Unspecified(), netip.IPv6Unspecified()}.of(addr)
}

func hasIPv6() bool {
	off, err := os.ReadFile("/proc/sys/net/ipv6/conf/all/disable_ipv6")
	return err == nil && len(off) > 0 && off[0] == '0'
}

type space struct {
	*netns.Namespace
	place
}

type node struct {
	space
	// the node's address on every pod's link
	gateway place
	pods    [2]netip.Prefix
	weft    *weft
}

type pod struct {
	space
	// the pod's servers, nil for a client
	sockets []io.Closer
}

type cluster struct {
	nodes []*node
	pods  []*pod
	// outside the cluster
	client space
	all    []*netns.Namespace
}

// The caller must close the cluster, even after an error.
func newCluster() (*cluster, error) {
	c := &cluster{}
	for _, number := range []string{"1", "2"} {
		n := &node{gateway: at("10.1."+number+".1", "fd00:1:0:"+number+"::1"), pods: [2]netip.Prefix{
			netip.MustParsePrefix("10.1." + number + ".0/24"), netip.MustParsePrefix("fd00:1:0:" + number + "::/64"),
		}}
		var err error
		if n.space, err = c.space("node-"+number, at("172.18.0."+number, "fd00:18::"+number), "1"); err != nil {
			return c, err
		}
		c.nodes = append(c.nodes, n)
	}
	if err := c.connectNodes(); err != nil {
		return c, err
	}
	one, two := c.nodes[0], c.nodes[1]
	return c, errors.Join(
		c.addPod("web-1", one, at("10.1.1.11", "fd00:1:0:1::11"), true),
		c.addPod("web-2", one, at("10.1.1.12", "fd00:1:0:1::12"), true),
		c.addPod("web-3", two, at("10.1.2.11", "fd00:1:0:2::11"), true),
		c.addPod("app", one, at("10.1.1.20", "fd00:1:0:1::20"), false),
		c.addPod("shell-1", one, at("10.1.1.21", "fd00:1:0:1::21"), false),
		c.addPod("shell-2", one, at("10.1.1.22", "fd00:1:0:1::22"), false),
		c.addClient(),
	)
}

func (c *cluster) space(name string, address place, forward string) (space, error) {
	ns, err := netns.New(name)
	if err != nil {
		return space{}, err
	}
	c.all = append(c.all, ns)
	return space{ns, address}, ns.Do(func() error {
		var errs []error
		for path, value := range map[string]string{
			"ipv4/ip_forward":                  forward,
			"ipv6/conf/all/forwarding":         forward,
			"ipv4/conf/all/send_redirects":     "0",
			"ipv4/conf/default/send_redirects": "0",
			"ipv4/conf/all/rp_filter":          "0",
			"ipv4/conf/default/rp_filter":      "0",
			// Duplicate address detection makes an IPv6 address unusable for a second.
			"ipv6/conf/all/accept_dad":     "0",
			"ipv6/conf/default/accept_dad": "0",
		} {
			// A kernel without IPv6 does not have its settings.
			if err := os.WriteFile("/proc/sys/net/"+path, []byte(value), 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, fmt.Errorf("set net/%s in %s: %w", path, name, err))
			}
		}
		return errors.Join(errs...)
	})
}

func (c *cluster) connectNodes() error {
	const link = "node0"
	one, two := c.nodes[0], c.nodes[1]
	errs := []error{netns.Join(netns.Port{NS: one.Namespace, Link: link, Addrs: one.hosts()}, netns.Port{NS: two.Namespace, Link: link, Addrs: two.hosts()})}
	for _, pair := range [][2]*node{{one, two}, {two, one}} {
		from, to := pair[0], pair[1]
		for i, addr := range to.all() {
			errs = append(errs, from.Route(host(addr), link, netip.Addr{}), from.Route(to.pods[i], link, addr))
		}
	}
	return errors.Join(errs...)
}

func (c *cluster) addPod(name string, n *node, address place, serves bool) (err error) {
	p := &pod{}
	if p.space, err = c.space(name, address, "0"); err != nil {
		return err
	}
	c.pods = append(c.pods, p)
	link := "veth-" + name
	errs := []error{netns.Join(netns.Port{NS: p.Namespace, Link: "eth0", Addrs: p.hosts()}, netns.Port{NS: n.Namespace, Link: link, Addrs: n.gateway.hosts()})}
	for _, addr := range p.all() {
		errs = append(errs, n.Route(host(addr), link, netip.Addr{}), p.Route(netip.PrefixFrom(zero(addr), 0), "eth0", n.gateway.of(addr)))
	}
	if serves {
		errs = append(errs, p.serve())
	}
	return errors.Join(errs...)
}

// addClient's link to each node is the node's default route. Otherwise the node itself would answer
// packets for unknown addresses, such as the address of a Service without endpoints.
func (c *cluster) addClient() (err error) {
	if c.client, err = c.space("client", at("192.0.2.100", "2001:db8::100"), "0"); err != nil {
		return err
	}
	var errs []error
	for _, n := range c.nodes {
		link := "veth-" + n.Name
		errs = append(errs, netns.Join(netns.Port{NS: c.client.Namespace, Link: link, Addrs: c.client.hosts()}, netns.Port{NS: n.Namespace, Link: "world"}))
		for _, addr := range c.client.all() {
			errs = append(errs, n.Route(netip.PrefixFrom(zero(addr), 0), "world", addr), c.client.Route(host(n.of(addr)), link, netip.Addr{}))
		}
	}
	return errors.Join(errs...)
}

func (c *cluster) pod(name string) *pod {
	i := slices.IndexFunc(c.pods, func(p *pod) bool { return p.Name == name })
	return c.pods[i]
}

func (c *cluster) servers() []*pod {
	return slices.DeleteFunc(slices.Clone(c.pods), func(p *pod) bool { return p.sockets == nil })
}

// awaitIPv6 waits until the servers answer, because the kernel adds IPv6 routes in the background.
func (c *cluster) awaitIPv6(ctx context.Context) error {
	for _, p := range c.servers() {
		if err := await(ctx, askTimeout, func(ctx context.Context) error {
			_, err := c.pod("app").askWithin(ctx, 100*time.Millisecond, "udp", netip.AddrPortFrom(p.V6, serverUDP))
			return err
		}); err != nil {
			return fmt.Errorf("ask %s at its own address: %w", p.Name, err)
		}
	}
	return nil
}

// The processes in the namespaces must have ended.
func (c *cluster) close() error {
	var errs []error
	for _, p := range c.pods {
		for _, s := range p.sockets {
			errs = append(errs, s.Close())
		}
	}
	for _, ns := range c.all {
		errs = append(errs, ns.Close())
	}
	return errors.Join(errs...)
}
