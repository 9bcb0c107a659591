package services

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weft-proxy/weft/frontends/services/health"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// inside is the network of a namespace.
type inside struct {
	health.Host
	ns *nfttest.NS
}

func (n inside) Listen(ctx context.Context, network, address string) (l net.Listener, err error) {
	err = n.ns.Do(func() error { l, err = n.Host.Listen(ctx, network, address); return err })
	return l, err
}

func (n inside) dial(ctx context.Context, to netip.AddrPort) (c *net.TCPConn, err error) {
	err = n.ns.Do(func() error { c, err = new(net.Dialer).DialTCP(ctx, "tcp", netip.AddrPort{}, to); return err })
	return c, err
}

// loopbackFrontend runs a frontend on the cluster's node with a list of words and prefixes. Scrapes do not use
// older ones.
func (s *stack) loopbackFrontend(t *testing.T, list model.NodePortList, gate *bool, objects ...any) (*counted, *script) {
	t.Helper()
	out, src := &counted{reg: prometheus.NewPedanticRegistry()}, newScript(objects...)
	s.configure = func(c *Config) {
		on := inside{ns: s.ns}
		c.Network, c.Dial, c.NodePortAddresses, c.LoopbackNodePorts, c.Registerer = on, on.dial, list, gate, out.reg
		c.Now = func() time.Time { return time.Now().Add(time.Duration(out.scrapes.Load()) * time.Minute) }
	}
	out.Frontend, out.stop = s.frontend(t, src)
	await(t, "the first commit", func() bool { return out.Status().Published })
	return out, src
}

// local returns the metrics of NodePorts on loopback addresses, without zeros.
func (c *counted) local(t *testing.T) string {
	t.Helper()
	c.scrapes.Add(1)
	families, err := c.reg.Gather()
	must(t, err)
	var out []string
	for _, f := range families {
		prefix, ok := strings.CutPrefix(f.GetName(), "kubeproxy_nftables_localhost_nodeport_")
		for _, m := range f.GetMetric() {
			name := prefix
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			if v := m.GetCounter().GetValue() + m.GetGauge().GetValue(); ok && v != 0 {
				out = append(out, fmt.Sprint(name, " ", v))
			}
		}
	}
	return strings.Join(out, ", ")
}

// TestNodePortLists sends packets to NodePorts for all subsets of words and prefixes.
//
// Behaviour: 20, 21, 22, 24, 178, 179, 180, 183.
func TestNodePortLists(t *testing.T) {
	c := newCluster(t)
	second := [2]netip.Addr{netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("2001:db8::2")}
	c.node.Run(t, "ip", "addr", "add", "192.0.2.2/24", "dev", "ext")
	c.node.Run(t, "ip", "-6", "addr", "add", "2001:db8::2/64", "dev", "ext", "nodad")
	s := newStack(t, c.node)
	s.aggregator(t)
	// The CIDR is of IPv4 only.
	const primary, localhost, all, cidr = 1, 2, 4, 8
	for subset := 1; subset < 16; subset++ {
		var prefixes []netip.Prefix
		if subset&localhost != 0 {
			prefixes = append(prefixes, netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"))
		}
		if subset&all != 0 {
			prefixes = append(prefixes, anywhere[:]...)
		}
		if subset&cidr != 0 {
			prefixes = append(prefixes, netip.MustParsePrefix("192.0.2.2/32"))
		}
		list := model.NodePorts(prefixes...)
		list.Primary = subset&primary != 0
		t.Run(fmt.Sprintf("primary %t localhost %t all %t cidr %t", subset&primary != 0, subset&localhost != 0, subset&all != 0, subset&cidr != 0), func(t *testing.T) {
			f, _ := s.loopbackFrontend(t, list, nil, threeServices(setNode(nodeAddr[0], nodeAddr[1]))...)
			defer f.stop()
			wantPorts := map[bool]string{true: "listeners IPv4 2, listeners IPv6 2"}[subset&localhost != 0]
			await(t, "listeners", func() bool { return f.local(t) == wantPorts })
			for fam := range model.NumFamilies {
				for _, tt := range []struct {
					from *nfttest.NS
					at   netip.Addr
					want bool
				}{
					{c.ext, nodeAddr[fam], subset&(primary|all) != 0},
					{c.ext, second[fam], subset&all != 0 || subset&cidr != 0 && fam == model.IPv4},
					{c.node, model.Loopback[fam], subset&localhost != 0},
				} {
					pod, source, err := ask(tt.from, "tcp", netip.AddrPortFrom(tt.at, 30080).String())
					if (err == nil) != tt.want {
						t.Errorf("%s: %q, %v, want an answer: %t", tt.at, pod, err, tt.want)
					}
					if tt.at.IsLoopback() && err == nil && source.As16()[15] != 1 {
						t.Errorf("%s saw the client %s: want the node", pod, source)
					}
				}
			}
		})
	}
}

// TestLoopbackRejects counts what is rejected, by protocol and family, with and without the feature gate.
//
// Behaviour: 179, 183, 186.
func TestLoopbackRejects(t *testing.T) {
	c := newCluster(t)
	s := newStack(t, c.node)
	s.aggregator(t)
	local4 := model.NodePorts(netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("0.0.0.0/0"))
	for _, tt := range []struct {
		name string
		gate *bool
		// TCP, TCP of IPv6, UDP, UDP of IPv6
		want    [4]string
		metrics string
	}{
		{"no gate", nil, [4]string{"pod", "refused", "refused", "refused"}, "listeners IPv4 2, rejected_packets_total IPv4 UDP 1"},
		{"gate", new(true), [4]string{"pod", "refused", "refused", "refused"}, "listeners IPv4 2, rejected_packets_total IPv4 UDP 1, rejected_packets_total IPv6 TCP 1, rejected_packets_total IPv6 UDP 1"},
		{"gate off", new(false), [4]string{"refused", "refused", "refused", "refused"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, _ := s.loopbackFrontend(t, local4, tt.gate, threeServices(setNode(nodeAddr[0], nodeAddr[1]))...)
			defer f.stop()
			f.local(t)
			if tt.want[0] == "pod" {
				await(t, "listeners", func() bool { return strings.HasPrefix(f.local(t), "listeners IPv4 2") })
			}
			for i, network := range []string{"tcp", "tcp", "udp", "udp"} {
				at := netip.AddrPortFrom(model.Loopback[i%2], 30080)
				pod, _, err := ask(c.node, network, at.String())
				if got := map[bool]string{true: "refused"}[errors.Is(err, syscall.ECONNREFUSED)] + strings.TrimRight(pod, "0123456789"); got != tt.want[i] {
					t.Errorf("%s %s: %s, %v, want %s", network, at, got, err, tt.want[i])
				}
			}
			// The kernel may miss an error during connect, and sends the SYN again.
			var got string
			await(t, "counters", func() bool {
				got = f.local(t)
				return strings.Replace(got, "IPv6 TCP 2", "IPv6 TCP 1", 1) == tt.metrics || t.Failed()
			})
			if rules := c.node.ListRuleset(t); strings.Contains(rules, "loopback-nodeports") != (tt.metrics != "") {
				t.Errorf("rules with metrics %q:\n%s", got, rules)
			}
		})
	}
}

// TestLoopbackFollows follows a Service with the policy Local and with affinity, and ends with it.
//
// Behaviour: 180, 181, 182.
func TestLoopbackFollows(t *testing.T) {
	c := newCluster(t)
	s := newStack(t, c.node)
	s.aggregator(t)
	service := func(change func(*corev1.ServiceSpec)) *corev1.Service {
		svc := setService("s9", 30090, clusterIP(0, 9).String())
		svc.Spec.Type = corev1.ServiceTypeNodePort
		change(&svc.Spec)
		return svc
	}
	pods := func(addrs ...string) any { return setSlice("s9", discoveryv1.AddressTypeIPv4, addrs...) }
	pod2, pod3 := podAddr(0, 2).String(), podAddr(0, 3).String()
	f, src := s.loopbackFrontend(t, model.NodePorts(netip.MustParsePrefix("127.0.0.0/8")), nil,
		setNode(nodeAddr[0], nodeAddr[1]), service(func(*corev1.ServiceSpec) {}), pods(pod2, pod3))
	at := netip.AddrPortFrom(model.Loopback[0], 30090).String()
	// answers asks until exactly these pods answer, all of them and no other one in a row of 30.
	answers := func(what, want string) {
		t.Helper()
		await(t, what, func() bool {
			seen := make(map[string]bool)
			for range 30 {
				pod, _, err := ask(c.node, "tcp", at)
				if errors.Is(err, syscall.ECONNREFUSED) {
					pod = "refused"
				}
				seen[pod] = true
			}
			return strings.Join(slices.Sorted(maps.Keys(seen)), " ") == want
		})
	}
	answers("all endpoints", "pod2 pod3")
	local := func(s *corev1.ServiceSpec) { s.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal }
	src.deliver(service(local), pods(pod2, pod3+"*"))
	answers("policy Local", "pod3")
	src.deliver(pods(pod2))
	answers("policy Local without a local endpoint", "refused")
	src.deliver(service(func(s *corev1.ServiceSpec) {
		s.SessionAffinity, s.SessionAffinityConfig = corev1.ServiceAffinityClientIP, &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(3600))}}
	}), pods(pod2))
	answers("affinity", "pod2")
	src.deliver(pods(pod2, pod3))
	await(t, "the new endpoint", func() bool { return f.content.Elements() > 4 })
	answers("affinity with another endpoint", "pod2")
	src.deliver(pods(pod3))
	answers("affinity without its endpoint", "pod3")
	src.deliver(serviceGone("s9"))
	answers("no Service", "refused")
	await(t, "no listener", func() bool { return f.local(t) == "" })
}
