package lab

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"sync"
)

// Pod is a namespace behind a node. Its servers answer its name.
type Pod struct {
	*Namespace
	Addresses Addresses

	node *Node
	link string // the node's end
	// toward is the node's interface with the routes to the pod.
	toward string

	mu sync.Mutex
	// open has the servers' sockets; nil after Stop.
	open map[io.Closer]struct{}
}

const gateway = 1

// NewPod makes a pod on a point-to-point link, as the ptp CNI plugin does, so that the node
// routes its traffic.
func (n *Node) NewPod(name string) (*Pod, error) {
	p, err := n.newPod(name)
	if err != nil {
		return nil, err
	}
	p.toward = p.link
	var errs []error
	gw := n.lab.podAddresses(n.number, gateway)
	for i, addr := range p.Addresses.All() {
		via := gw.All()[i]
		errs = append(errs,
			n.addAddress(p.link, host(via)), n.addRoute(p.link, host(addr), netip.Addr{}),
			p.addAddress(uplink, host(addr)), p.addRoute(uplink, everything(via), via))
	}
	return p, errors.Join(errs...)
}

// Bridge is the node's bridge for NewBridgedPod.
const Bridge = "cni0"

// NewBridgedPod makes a pod on a bridge, as the bridge CNI plugin does, so that a node's pods reach
// each other without a route. All pods of a node have the same kind.
func (n *Node) NewBridgedPod(name string) (*Pod, error) {
	gw := n.lab.podAddresses(n.number, gateway)
	if n.pods == 0 {
		errs := []error{n.bridge(Bridge)}
		for i, prefix := range n.PodCIDRs {
			errs = append(errs, n.addAddress(Bridge, netip.PrefixFrom(gw.All()[i], prefix.Bits())))
		}
		if err := errors.Join(errs...); err != nil {
			return nil, err
		}
	}
	p, err := n.newPod(name)
	if err != nil {
		return nil, err
	}
	p.toward = Bridge
	errs := []error{n.enslave(p.link, Bridge)}
	for i, addr := range p.Addresses.All() {
		via := gw.All()[i]
		errs = append(errs, p.addAddress(uplink, netip.PrefixFrom(addr, n.PodCIDRs[i].Bits())), p.addRoute(uplink, everything(via), via))
	}
	return p, errors.Join(errs...)
}

func (n *Node) newPod(name string) (*Pod, error) {
	n.pods++
	number := gateway + n.pods
	if number > 254 {
		return nil, fmt.Errorf("make pod %s: %s is full", name, n.Name())
	}
	ns, err := NewNamespace(name)
	if err != nil {
		return nil, err
	}
	link := "pod" + strconv.Itoa(number)
	p := &Pod{Namespace: ns, Addresses: n.lab.podAddresses(n.number, number), node: n, link: link, open: map[io.Closer]struct{}{}}
	n.lab.pods = append(n.lab.pods, p)
	return p, veth(n.Namespace, link, ns, uplink)
}

// Node returns the pod's node.
func (p *Pod) Node() *Node { return p.node }

// Link returns the node's end of the pod's link; the pod's end is Uplink.
func (p *Pod) Link() string { return p.link }

// Announce gives the pod an additional address, routed from every node and from outside.
func (p *Pod) Announce(addr netip.Addr) error {
	errs := []error{p.addAddress(uplink, host(addr)), p.node.addRoute(p.toward, host(addr), netip.Addr{})}
	for _, h := range p.others() {
		errs = append(errs, h.addRoute(uplink, host(addr), p.node.Addresses.of(host(addr))))
	}
	return errors.Join(errs...)
}

func (p *Pod) others() []*Host {
	all := []*Host{p.node.lab.Outside}
	for _, n := range p.node.lab.Nodes {
		if n != p.node {
			all = append(all, &n.Host)
		}
	}
	return all
}

// Serve answers TCP and UDP on the ports, on all addresses of the pod. See Ask.
func (p *Pod) Serve(ports ...uint16) error {
	for _, port := range ports {
		address := net.JoinHostPort("::", strconv.Itoa(int(port)))
		err := p.Do(func() error {
			tcp, err := net.Listen("tcp", address)
			if err != nil {
				return err
			}
			udp, err := net.ListenPacket("udp", address)
			if err != nil {
				tcp.Close()
				return err
			}
			if !p.track(tcp) || !p.track(udp) {
				return errors.New("the pod has stopped")
			}
			go p.serveTCP(tcp, port)
			go p.serveUDP(udp.(*net.UDPConn), port)
			return nil
		})
		if err != nil {
			return fmt.Errorf("serve port %d in pod %s: %w", port, p.Name(), err)
		}
	}
	return nil
}

// Stop ends the servers and their connections, and releases the namespace.
func (p *Pod) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		c.Close()
	}
	p.open = nil
	p.Close()
}
