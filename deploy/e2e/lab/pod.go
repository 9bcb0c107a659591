package lab

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
)

// Pod is a namespace behind a node, with servers. Its name is what they answer.
type Pod struct {
	*Namespace
	Addresses Addresses

	mu      sync.Mutex
	servers []net.Listener
	packets []net.PacketConn
	conns   map[net.Conn]struct{}
	stopped bool
}

// gateway is the number of the node's own address in its pods' prefixes.
const gateway = 1

// NewPod makes a pod behind the node: a point-to-point link, as the ptp CNI
// plugin makes it, so that all of the pod's traffic is routed by the node.
func (n *Node) NewPod(name string) (*Pod, error) {
	n.pods++
	number := gateway + n.pods
	if number > 254 {
		return nil, fmt.Errorf("make pod %s: %s is full", name, n.Name())
	}
	ns, err := NewNamespace(name)
	if err != nil {
		return nil, err
	}
	p := &Pod{Namespace: ns, Addresses: podAddresses(n.number, number), conns: map[net.Conn]struct{}{}}
	n.lab.pods = append(n.lab.pods, p)
	link := "pod" + strconv.Itoa(number)
	if err := veth(n.Namespace, link, ns, uplink); err != nil {
		return nil, err
	}
	gw := podAddresses(n.number, gateway)
	for i, addr := range p.Addresses.All() {
		via := gw.All()[i]
		if err := n.addAddress(link, host(via)); err != nil {
			return nil, err
		}
		if err := n.addRoute(link, host(addr), netip.Addr{}); err != nil {
			return nil, err
		}
		if err := ns.addAddress(uplink, host(addr)); err != nil {
			return nil, err
		}
		if err := ns.addRoute(uplink, everything(via), via); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Serve answers TCP and UDP on the port, on all addresses of the pod. See Ask
// for what it answers.
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
			p.mu.Lock()
			defer p.mu.Unlock()
			p.servers = append(p.servers, tcp)
			p.packets = append(p.packets, udp)
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

// Stop ends the servers and their connections, and lets go of the namespace.
// It may be called twice.
func (p *Pod) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	p.stopped = true
	for _, s := range p.servers {
		s.Close()
	}
	for _, s := range p.packets {
		s.Close()
	}
	for c := range p.conns {
		c.Close()
	}
	p.Close()
}
