package services

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// threeServices are three Services of both families: s1 with pods 2 and 3, s2 with
// none, s3 with pod 1 alone. NodePorts are 30080 and up.
func threeServices(node ...any) []any {
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
//
// Behaviour: 1, 2, 3, 6, 7, 9, 10, 24, 25, 30.
func TestPackets(t *testing.T) {
	c := newCluster(t)
	s := newStack(t, c.node)
	s.aggregator(t)
	src := newScript(threeServices(setNode(nodeAddr[0], nodeAddr[1]))...)
	frontend, _ := s.frontend(t, src)
	await(t, "the first commit", func() bool { return frontend.Status().Published })
	c.node.ListRuleset(t)
	for f := range model.NumFamilies {
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

// TestNodePortAddresses checks where NodePorts answer. A list that leaves a family out
// closes it.
//
// Behaviour: 19, 20, 21, 22, 23, 144.
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
	primary := []any{setNode(nodeAddr[0], nodeAddr[1])}
	for _, tt := range []struct {
		name     string
		prefixes []netip.Prefix
		node     []any
		// want is for each family whether the first and the second address answer.
		want [2][2]bool
	}{
		{"primary", nil, primary, [2][2]bool{{true, false}, {true, false}}},
		{"primary of one family", nil, []any{setNode(second[0])}, [2][2]bool{{false, true}, {}}},
		{"no Node object", nil, nil, [2][2]bool{{true, true}, {true, true}}},
		{"prefixes", prefixesOf("192.0.2.0/25", "2001:db8::2/128"), primary, [2][2]bool{{true, true}, {false, true}}},
		{"prefixes of one family", prefixesOf("2001:db8::/64"), primary, [2][2]bool{{}, {true, true}}},
		{"all", prefixesOf("0.0.0.0/0", "::/0"), primary, [2][2]bool{{true, true}, {true, true}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			frontend, stop := s.frontend(t, newScript(threeServices(tt.node...)...), tt.prefixes...)
			defer stop()
			await(t, "the first commit", func() bool { return frontend.Status().Published })
			for f := range model.NumFamilies {
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
//
// Behaviour: 106, 108, 110, 111.
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
	revision := func(change ...any) {
		t.Helper()
		before := frontend.Status().Revision
		src.deliver(change...)
		await(t, "the commit", func() bool { return frontend.Status().Revision > before })
	}
	within("pod2", time.Minute)
	// The backend begins to terminate but still serves: the flow stays.
	leaving := setSlice("s1", discoveryv1.AddressTypeIPv4, pod(2), pod(3))
	no, yes := false, true
	leaving.Endpoints[0].Conditions = discoveryv1.EndpointConditions{Ready: &no, Serving: &yes, Terminating: &yes}
	revision(leaving)
	for range 20 {
		if !answers("pod2") {
			t.Fatal("a flow left a backend that still serves")
		}
	}
	// It goes: the flow moves.
	revision(setSlice("s1", discoveryv1.AddressTypeIPv4, pod(3)))
	within("pod3", time.Minute)
	// All go, datagrams are rejected; one comes back.
	revision(setSlice("s1", discoveryv1.AddressTypeIPv4))
	// The flush comes after the acknowledgement.
	await(t, "the flow to end", func() bool { return !answers("pod3") })
	revision(setSlice("s1", discoveryv1.AddressTypeIPv4, pod(2)))
	within("pod2", time.Minute)
	// The TCP connection was made to pod 2 before all that.
	b := make([]byte, 128)
	_ = tcp.SetDeadline(time.Now().Add(3 * time.Minute))
	if n, err := tcp.Read(b); err != nil || !strings.HasPrefix(string(b[:n]), "pod2 ") {
		t.Errorf("the TCP connection gives %q, %v", b[:n], err)
	}
}
