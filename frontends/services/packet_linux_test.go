package services

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/source"
	"github.com/weft-proxy/weft/nft/nfttest"
)

// cluster is a node with three pods and a client outside of the cluster, each a
// network namespace. Pod i is 10.244.i.2 and fd00:10:244:i::2 and serves TCP and
// UDP on port 8080: it answers with its name and the client's address.
type cluster struct {
	node, ext *nfttest.NS
	pods      [4]*nfttest.NS
}

func podAddr(f model.Family, i int) netip.Addr {
	if f == model.IPv4 {
		return netip.MustParseAddr(fmt.Sprintf("10.244.%d.2", i))
	}
	return netip.MustParseAddr(fmt.Sprintf("fd00:10:244:%d::2", i))
}

var (
	nodeAddr = [2]netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}
	extAddr  = [2]netip.Addr{netip.MustParseAddr("192.0.2.10"), netip.MustParseAddr("2001:db8::10")}
	anywhere = [2]netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
)

func newCluster(t *testing.T) *cluster {
	t.Helper()
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	c := &cluster{node: newNS(t), ext: newNS(t)}
	prefix := func(a netip.Addr) netip.Prefix {
		return netip.PrefixFrom(a, map[bool]int{true: 24, false: 64}[a.Is4()])
	}
	nfttest.Veth(t, nfttest.Port{NS: c.node, Name: "ext", Addrs: []netip.Prefix{prefix(nodeAddr[0]), prefix(nodeAddr[1])}},
		nfttest.Port{NS: c.ext, Name: "eth0", Addrs: []netip.Prefix{prefix(extAddr[0]), prefix(extAddr[1])}})
	for f := range anywhere {
		// Traffic to ClusterIPs reaches the node, and leaves it for a place
		// that rules have to catch.
		c.ext.Route(t, anywhere[f], nodeAddr[f])
		c.node.Route(t, anywhere[f], extAddr[f])
	}
	for i := 1; i < len(c.pods); i++ {
		ns := newNS(t)
		c.pods[i] = ns
		var gw, own []netip.Prefix
		for f := range model.Families {
			own = append(own, prefix(podAddr(f, i)))
			gw = append(gw, prefix(podAddr(f, i).Prev()))
		}
		nfttest.Veth(t, nfttest.Port{NS: c.node, Name: fmt.Sprintf("pod%d", i), Addrs: gw}, nfttest.Port{NS: ns, Name: "eth0", Addrs: own})
		for f := range anywhere {
			ns.Route(t, anywhere[f], gw[f].Addr())
		}
		serve(t, ns, fmt.Sprintf("pod%d", i))
	}
	// Besides forwarding: the kernel limits error messages, and counts redirects
	// among them; tests ask faster than that.
	sysctl(t, c.node, map[string]string{
		"ipv4/ip_forward": "1", "ipv6/conf/all/forwarding": "1",
		"ipv4/icmp_ratelimit": "0", "ipv6/icmp/ratelimit": "0",
		"ipv4/conf/all/send_redirects": "0", "ipv4/conf/ext/send_redirects": "0",
	})
	return c
}

// newNS makes a namespace whose IPv6 addresses, the link-local ones too, can be
// used at once.
func newNS(t *testing.T) *nfttest.NS {
	ns := nfttest.New(t)
	sysctl(t, ns, map[string]string{"ipv6/conf/all/accept_dad": "0", "ipv6/conf/default/accept_dad": "0"})
	return ns
}

func sysctl(t *testing.T, ns *nfttest.NS, values map[string]string) {
	t.Helper()
	for path, value := range values {
		if err := ns.Do(func() error { return os.WriteFile("/proc/sys/net/"+path, []byte(value), 0) }); err != nil {
			t.Fatal(err)
		}
	}
}

// serve starts the servers of a pod.
func serve(t *testing.T, ns *nfttest.NS, name string) {
	t.Helper()
	var l net.Listener
	var p net.PacketConn
	err := ns.Do(func() (err error) {
		if l, err = net.Listen("tcp", "[::]:8080"); err != nil {
			return err
		}
		p, err = net.ListenPacket("udp", "[::]:8080")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); p.Close() })
	answer := func(from net.Addr) []byte {
		a := netip.MustParseAddrPort(from.String())
		return []byte(name + " " + a.Addr().Unmap().String())
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write(answer(c.RemoteAddr()))
			c.Close()
		}
	}()
	go func() {
		for b := make([]byte, 64); ; {
			_, from, err := p.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = p.WriteTo(answer(from), from)
		}
	}()
}

// ask connects from a namespace and returns which pod answered and whose
// address it saw.
func ask(ns *nfttest.NS, network, addr string) (pod string, source netip.Addr, err error) {
	err = ns.Do(func() error {
		c, err := net.DialTimeout(network, addr, 2*time.Second)
		if err != nil {
			return err
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(2 * time.Second))
		if network == "udp" {
			if _, err := c.Write([]byte("?")); err != nil {
				return err
			}
		}
		b := make([]byte, 128)
		n, err := c.Read(b)
		if err != nil {
			return err
		}
		name, from, _ := strings.Cut(string(b[:n]), " ")
		pod = name
		source, err = netip.ParseAddr(from)
		return err
	})
	return pod, source, err
}

// clusterIP returns the address of the i-th Service.
func clusterIP(f model.Family, i int) netip.Addr {
	if f == model.IPv4 {
		return netip.MustParseAddr(fmt.Sprintf("10.96.0.%d", i))
	}
	return netip.MustParseAddr(fmt.Sprintf("fd00:10:96::%d", i))
}

// objects are three Services of both families: s1 with pods 2 and 3, s2 with
// none, s3 with pod 1 alone. NodePorts are 30080 and up.
func objects(node ...source.Event) []source.Event {
	out := node
	for i, pods := range [][]int{1: {2, 3}, 2: {}, 3: {1}} {
		if i == 0 {
			continue
		}
		name := fmt.Sprintf("s%d", i)
		out = append(out, setService(name, int32(30079+i), clusterIP(0, i).String(), clusterIP(1, i).String()))
		for f, kind := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
			var addrs []string
			for _, p := range pods {
				addrs = append(addrs, podAddr(model.Family(f), p).String()+"*")
			}
			out = append(out, setSlice(name, kind, addrs...))
		}
	}
	return out
}

// TestPackets sends real packets through what the frontend publishes.
func TestPackets(t *testing.T) {
	c := newCluster(t)
	s := newStack(t, c.node)
	s.aggregator(t)
	src := newScript(objects(setNode(nodeAddr[0], nodeAddr[1]))...)
	frontend, _ := s.frontend(t, src)
	await(t, "the first commit", func() bool { return frontend.Status().Published })
	c.node.ListRuleset(t)
	for f := range model.Families {
		nodePort := func(n int) string { return netip.AddrPortFrom(nodeAddr[f], uint16(n)).String() }
		vip := func(i, n int) string { return netip.AddrPortFrom(clusterIP(f, i), uint16(n)).String() }
		masq := func(pod string) netip.Addr { return podAddr(f, int(pod[3]-'0')).Prev() }
		kept := func(a netip.Addr) func(string) netip.Addr { return func(string) netip.Addr { return a } }
		for _, tt := range []struct {
			name   string
			from   *nfttest.NS
			to     string
			pods   []string
			source func(pod string) netip.Addr
		}{
			{"pod to ClusterIP keeps its address", c.pods[1], vip(1, 80), []string{"pod2", "pod3"}, kept(podAddr(f, 1))},
			{"node to ClusterIP", c.node, vip(1, 80), []string{"pod2", "pod3"}, masq},
			{"outside to ClusterIP is masqueraded", c.ext, vip(1, 80), []string{"pod2", "pod3"}, masq},
			{"pod to itself through its Service", c.pods[1], vip(3, 80), []string{"pod1"}, masq},
			{"pod to the Service that it is in", c.pods[2], vip(1, 80), []string{"pod2", "pod3"}, nil},
			{"outside to NodePort is masqueraded", c.ext, nodePort(30080), []string{"pod2", "pod3"}, masq},
			{"pod to NodePort is masqueraded", c.pods[1], nodePort(30080), []string{"pod2", "pod3"}, masq},
			{"pod to itself through NodePort", c.pods[1], nodePort(30082), []string{"pod1"}, masq},
			{"node to NodePort", c.node, nodePort(30080), []string{"pod2", "pod3"}, masq},
		} {
			for _, network := range []string{"tcp", "udp"} {
				t.Run(fmt.Sprintf("%s %s/%s", f, tt.name, network), func(t *testing.T) {
					got := make(map[string]int)
					for i := 0; i < 100 && len(got) < len(tt.pods); i++ {
						pod, source, err := ask(tt.from, network, tt.to)
						if err != nil {
							t.Fatalf("ask %s: %v", tt.to, err)
						}
						got[pod]++
						if !slices.Contains(tt.pods, pod) {
							t.Errorf("%s answered, want one of %v", pod, tt.pods)
						}
						if tt.source != nil && source != tt.source(pod) {
							t.Errorf("%s saw %s, want %s", pod, source, tt.source(pod))
						}
					}
					if len(got) != len(tt.pods) {
						t.Errorf("of %v only %v ever answered", tt.pods, got)
					}
				})
			}
		}
		c.refusals(t, f, vip, nodePort)
	}
}

// refusals checks what must be rejected at once.
func (c *cluster) refusals(t *testing.T, f model.Family, vip func(i, n int) string, nodePort func(n int) string) {
	loopback := netip.MustParseAddr([]string{"127.0.0.1", "::1"}[f])
	for _, tt := range []struct {
		name string
		from *nfttest.NS
		to   string
	}{
		{"pod to ClusterIP without endpoints", c.pods[1], vip(2, 80)},
		{"node to ClusterIP without endpoints", c.node, vip(2, 80)},
		{"outside to ClusterIP without endpoints", c.ext, vip(2, 80)},
		{"outside to NodePort without endpoints", c.ext, nodePort(30081)},
		{"pod to NodePort without endpoints", c.pods[1], nodePort(30081)},
		{"node to NodePort without endpoints", c.node, nodePort(30081)},
		{"pod to another port of a ClusterIP", c.pods[1], vip(1, 81)},
		{"node to another port of a ClusterIP", c.node, vip(1, 81)},
		{"node to NodePort on the loopback", c.node, netip.AddrPortFrom(loopback, 30080).String()},
	} {
		for _, network := range []string{"tcp", "udp"} {
			t.Run(fmt.Sprintf("%s %s/%s", f, tt.name, network), func(t *testing.T) {
				_, _, err := ask(tt.from, network, tt.to)
				// A sender on the node itself hears of the reject by EPERM.
				if !errors.Is(err, syscall.ECONNREFUSED) && !(tt.from == c.node && errors.Is(err, syscall.EPERM)) {
					t.Errorf("ask %s: %v, want connection refused", tt.to, err)
				}
			})
		}
	}
}

// TestNodePortAddresses checks where NodePorts answer.
func TestNodePortAddresses(t *testing.T) {
	c := newCluster(t)
	second := [2]netip.Addr{netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("2001:db8::2")}
	prefixesOf := func(addrs ...string) (out []netip.Prefix) {
		for _, a := range addrs {
			out = append(out, netip.MustParsePrefix(a))
		}
		return out
	}
	s := newStack(t, c.node)
	s.aggregator(t)
	c.node.Run(t, "ip", "addr", "add", "192.0.2.2/24", "dev", "ext")
	c.node.Run(t, "ip", "-6", "addr", "add", "2001:db8::2/64", "dev", "ext", "nodad")
	primary := []source.Event{setNode(nodeAddr[0], nodeAddr[1])}
	for _, tt := range []struct {
		name     string
		prefixes []netip.Prefix
		node     []source.Event
		// want is for each family whether the first and the second address answer.
		want [2][2]bool
	}{
		{"primary", nil, primary, [2][2]bool{{true, false}, {true, false}}},
		{"primary of one family", nil, []source.Event{setNode(second[0])}, [2][2]bool{{false, true}, {}}},
		{"no Node object", nil, nil, [2][2]bool{{true, true}, {true, true}}},
		{"prefixes", prefixesOf("192.0.2.0/25", "2001:db8::2/128"), primary, [2][2]bool{{true, true}, {false, true}}},
		{"prefixes of one family", prefixesOf("2001:db8::/64"), primary, [2][2]bool{{}, {true, true}}},
		{"all", prefixesOf("0.0.0.0/0", "::/0"), primary, [2][2]bool{{true, true}, {true, true}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			frontend, stop := s.frontend(t, newScript(objects(tt.node...)...), tt.prefixes...)
			defer stop()
			await(t, "the first commit", func() bool { return frontend.Status().Published })
			for f := range model.Families {
				for i, a := range []netip.Addr{nodeAddr[f], second[f]} {
					_, _, err := ask(c.ext, "tcp", netip.AddrPortFrom(a, 30080).String())
					if (err == nil) != tt.want[f][i] {
						t.Errorf("%s: %v, want an answer: %t", a, err, tt.want[f][i])
					}
				}
			}
		})
	}
}

// TestFlowsFollowBackends: a UDP client with one source port moves away from a
// backend that goes and from a port that had none, and a drained backend keeps
// it; a TCP connection to a surviving backend is not touched by any of that.
func TestFlowsFollowBackends(t *testing.T) {
	c := newCluster(t)
	s := newStack(t, c.node)
	s.aggregator(t)
	vip := clusterIP(model.IPv4, 1)
	to := netip.AddrPortFrom(vip, 80).String()
	pod := func(i int) string { return podAddr(model.IPv4, i).String() }
	src := newScript(setNode(nodeAddr[0]), setService("s1", 0, vip.String()), setSlice("s1", discoveryv1.AddressTypeIPv4, pod(2)))
	frontend, _ := s.frontend(t, src)
	await(t, "the first commit", func() bool { return frontend.Status().Published })

	var tcp, udp net.Conn
	if err := c.pods[1].Do(func() (err error) {
		if tcp, err = net.DialTimeout("tcp", to, 2*time.Second); err != nil {
			return err
		}
		udp, err = net.DialTimeout("udp", to, 2*time.Second)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	defer udp.Close()
	// answers reports whether the next datagram is answered by this pod.
	answers := func(name string) bool {
		_ = udp.SetDeadline(time.Now().Add(100 * time.Millisecond))
		if _, err := udp.Write([]byte("?")); err != nil {
			return false
		}
		b := make([]byte, 128)
		n, err := udp.Read(b)
		return err == nil && strings.HasPrefix(string(b[:n]), name+" ")
	}
	within := func(name string, limit time.Duration) {
		t.Helper()
		began := time.Now()
		await(t, name+" to answer", func() bool { return answers(name) })
		if took := time.Since(began); took > limit {
			t.Errorf("%s answers after %v, want %v", name, took, limit)
		}
	}
	revision := func(change ...source.Event) {
		t.Helper()
		before := frontend.Status().Revision
		src.deliver(change...)
		await(t, "the commit", func() bool { return frontend.Status().Revision > before })
	}
	within("pod2", time.Second)
	// The backend begins to terminate but still serves: the flow stays.
	leaving := setSlice("s1", discoveryv1.AddressTypeIPv4, pod(2), pod(3)).(source.SliceSet)
	no, yes := false, true
	leaving.Slice.Endpoints[0].Conditions = discoveryv1.EndpointConditions{Ready: &no, Serving: &yes, Terminating: &yes}
	revision(leaving)
	for range 20 {
		if !answers("pod2") {
			t.Fatal("a flow left a backend that still serves")
		}
	}
	// It goes: the flow moves.
	revision(setSlice("s1", discoveryv1.AddressTypeIPv4, pod(3)))
	within("pod3", time.Second)
	// All go, datagrams are rejected; one comes back.
	revision(setSlice("s1", discoveryv1.AddressTypeIPv4))
	// The flush comes after the acknowledgement.
	await(t, "the flow to end", func() bool { return !answers("pod3") })
	revision(setSlice("s1", discoveryv1.AddressTypeIPv4, pod(2)))
	within("pod2", time.Second)
	// The TCP connection was made to pod 2 before all that.
	b := make([]byte, 128)
	_ = tcp.SetDeadline(time.Now().Add(2 * time.Second))
	if n, err := tcp.Read(b); err != nil || !strings.HasPrefix(string(b[:n]), "pod2 ") {
		t.Errorf("the TCP connection gives %q, %v", b[:n], err)
	}
}
