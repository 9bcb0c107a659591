package render

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-proxy/weft/frontends/policy/model"
)

// rulesTo is a rule that accepts the pods of a set, at some ports or at all.
func rulesTo(set model.SetID, at ...string) []model.Rule {
	return []model.Rule{{Pods: []model.SetID{set}, AllPorts: len(at) == 0, Ports: ports(at...)}}
}

// podsSet is a set with these pods of the lab.
func (l *lab) podsSet(id string, members ...int) model.SetID {
	var all []string
	for _, i := range members {
		all = append(all, labAddr(0, i).String(), labAddr(1, i).String())
	}
	return l.set(id, all...)
}

// labPod sets pod i with policies.
func (l *lab) labPod(i int, ingress, egress string) {
	l.pod(fmt.Sprintf("lab/pod%d", i), labAddr(0, i).String()+" "+labAddr(1, i).String(), strings.Fields(ingress), strings.Fields(egress))
}

// packetTest is the packets that are answered, or not, with a ruleset.
type packetTest struct {
	name            string
	set             func()
	allowed, denied []string
}

// test makes each ruleset, and sends the packets.
func (l *lab) test(t *testing.T, tests []packetTest) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l.t = t
			clear(l.fixture.pods)
			clear(l.policies)
			clear(l.sets)
			test.set()
			l.apply()
			l.expect(test.allowed, test.denied)
		})
	}
}

// TestPackets sends packets through rulesets, both families, TCP and UDP.
//
// Policy behaviour: 4-8, 19, 23-25, 30-33, 35, 37, 38, 40, 58-62, 65.
func TestPackets(t *testing.T) {
	l := newLab(t)
	l.test(t, []packetTest{
		{"no policies", func() {}, []string{"pod1 pod2", "ext pod2", "node pod2", "pod2 node", "pod1 service2"}, nil},
		{"a policy without rules isolates ingress alone", func() {
			l.policy("lab/p", nil, nil)
			l.labPod(2, "lab/p", "")
		}, []string{"node pod2", "pod2 pod1", "pod2 node", "pod2 ext", "pod1 pod3"}, []string{"pod1 pod2", "ext pod2", "pod1 service2"}},
		{"pods of a set", func() {
			l.policy("lab/p", rulesTo(l.podsSet("s", 1)), nil)
			l.labPod(2, "lab/p", "")
		}, []string{"pod1 pod2", "pod1 service2"}, []string{"pod3 pod2", "ext pod2"}},
		{"a range of ports and single ports", func() {
			l.policy("lab/p", []model.Rule{{Any: true, Ports: ports("udp 8000-9000", "tcp 80", "tcp 8081")}}, nil)
			l.labPod(2, "lab/p", "")
		}, []string{"pod1 pod2 udp", "pod1 service2 udp"}, []string{"pod1 pod2 tcp", "pod1 service2 tcp"}},
		{"a whole protocol", func() {
			l.policy("lab/p", []model.Rule{{Any: true, Ports: ports("udp")}}, nil)
			l.labPod(2, "lab/p", "")
		}, []string{"pod1 pod2 udp"}, []string{"pod1 pod2 tcp"}},
		{"a named port", func() {
			id := l.set("n", labAddr(0, 2).String()+" tcp 8080", labAddr(1, 2).String()+" tcp 8080", labAddr(0, 3).String()+" udp 8080", labAddr(1, 3).String()+" udp 8080")
			l.policy("lab/p", []model.Rule{{Any: true, NamedPorts: []model.SetID{id}}}, nil)
			l.labPod(2, "lab/p", "")
			l.labPod(3, "lab/p", "")
		}, []string{"pod1 pod2 tcp", "pod1 pod3 udp"}, []string{"pod1 pod2 udp", "pod1 pod3 tcp"}},
		{"blocks", func() {
			l.policy("lab/p", []model.Rule{{Blocks: blocks("192.0.2.0/28", "198.51.100.0/24", "2001:db8::/64", "2001:db9::/64"), AllPorts: true}}, nil)
			l.labPod(2, "lab/p", "")
		}, []string{"ext pod2"}, []string{"pod1 pod2"}},
		{"egress to pods, not to others and not to the node", func() {
			l.policy("lab/p", nil, rulesTo(l.podsSet("s", 2)))
			l.labPod(1, "", "lab/p")
		}, []string{"pod1 pod2", "pod1 service2", "pod3 pod1", "node pod1", "ext pod1"}, []string{"pod1 pod3", "pod1 ext", "pod1 node", "pod1 service3"}},
		{"egress to a port of the pod, not of the Service", func() {
			l.policy("lab/p", nil, rulesTo(l.podsSet("s", 2), "tcp 8080", "udp 80"))
			l.labPod(1, "", "lab/p")
		}, []string{"pod1 pod2 tcp", "pod1 service2 tcp"}, []string{"pod1 service2 udp", "pod1 pod2 udp"}},
		{"egress to the node", func() {
			l.policy("lab/p", nil, []model.Rule{{Blocks: blocks("192.0.2.1/32", "2001:db8::1/128"), Ports: ports("tcp 8080")}})
			l.labPod(1, "", "lab/p")
		}, []string{"pod1 node tcp"}, []string{"pod1 node udp", "pod1 ext"}},
		{"both ends must allow", func() {
			l.policy("lab/out", nil, rulesTo(l.podsSet("s", 2, 3)))
			l.policy("lab/in", nil, nil)
			l.labPod(1, "", "lab/out")
			l.labPod(3, "lab/in", "")
		}, []string{"pod1 pod2"}, []string{"pod1 pod3"}},
		{"a pod reaches itself through a Service", func() {
			l.policy("lab/p", nil, nil)
			l.labPod(1, "lab/p", "lab/p")
		}, []string{"pod1 service1", "node pod1"}, []string{"pod1 pod2", "pod2 pod1", "pod1 node"}},
		{"policies add up", func() {
			l.policy("lab/p", rulesTo(l.podsSet("s", 1)), nil)
			l.policy("lab/q", rulesTo(l.podsSet("u", 3), "udp 8080"), nil)
			l.labPod(2, "lab/p lab/q", "")
		}, []string{"pod1 pod2", "pod3 pod2 udp"}, []string{"pod3 pod2 tcp", "ext pod2"}},
		{"a policy that is left out isolates", func() {
			l.labPod(2, "lab/gone", "")
		}, []string{"node pod2", "pod2 pod1"}, []string{"pod1 pod2"}},
		{"the tier Admin decides first", func() {
			l.policy("admin/a", []model.Rule{
				{Action: model.Deny, Any: true, Ports: ports("udp 8080")},
				{Action: model.Accept, Pods: []model.SetID{l.podsSet("s", 1)}, AllPorts: true},
				{Action: model.Pass, Pods: []model.SetID{l.podsSet("u", 3)}, AllPorts: true},
				{Action: model.Deny, Any: true, AllPorts: true},
			}, nil)
			l.policy("lab/p", nil, nil)
			l.policy("baseline/b", everyone, nil)
			l.labPod(2, "admin/a lab/p baseline/b", "")
			l.labPod(1, "admin/a", "")
		}, []string{"pod1 pod2 tcp", "pod3 pod1 tcp", "pod1 service1 tcp"}, []string{"pod1 pod2 udp", "pod3 pod2", "ext pod2", "pod3 pod1 udp", "ext pod1", "pod1 service1 udp"}},
		{"Accept of the tier Admin on egress leaves ingress to decide", func() {
			l.policy("admin/a", nil, []model.Rule{{Action: model.Accept, Any: true, AllPorts: true}})
			l.policy("lab/p", nil, nil)
			l.labPod(1, "", "admin/a lab/p")
			l.labPod(2, "lab/p", "")
		}, []string{"pod1 pod3", "pod1 ext"}, []string{"pod1 pod2"}},
		{"the tier Baseline decides for pods that are not isolated", func() {
			l.policy("baseline/b", []model.Rule{{Action: model.Accept, Pods: []model.SetID{l.podsSet("s", 1)}, AllPorts: true}, {Action: model.Deny, Any: true, Ports: ports("tcp 8080")}}, nil)
			l.policy("lab/p", everyone, nil)
			l.labPod(2, "baseline/b", "")
			l.labPod(3, "lab/p baseline/b", "")
		}, []string{"pod1 pod2", "pod3 pod2 udp", "pod2 pod3"}, []string{"pod3 pod2 tcp", "ext pod2 tcp"}},
	})
}

// links opens connections between two ends in both families.
func (l *lab) links(from, to string) (out []*link) {
	l.t.Helper()
	ns, _ := l.end(from)
	_, addrs := l.end(to)
	for _, network := range []string{"tcp", "udp"} {
		for _, a := range addrs {
			c, err := dial(ns, network, netip.Addr{}, a, wait(true))
			if err != nil {
				l.t.Fatalf("%s to %s: %v", from, to, err)
			}
			l.t.Cleanup(func() { c.Close() })
			out = append(out, c)
		}
	}
	return out
}

// alive checks that connections work, or that they do not.
func (l *lab) alive(name string, all []*link, want bool) {
	l.t.Helper()
	for _, c := range all {
		if err := c.echo(wait(want)); (err == nil) != want {
			l.t.Errorf("%s, %s %s: %v, want alive %v", name, c.LocalAddr().Network(), c.RemoteAddr(), err, want)
		}
	}
}

// TestNarrowingCutsConnections removes a pod from a set and a policy's rules; the
// connections that are still allowed stay.
//
// Policy behaviour: 47, 48.
func TestNarrowingCutsConnections(t *testing.T) {
	l := newLab(t)
	set := l.podsSet("s", 1, 3)
	l.policy("lab/p", rulesTo(set), nil)
	l.policy("lab/out", nil, everyone)
	l.labPod(2, "lab/p", "")
	l.labPod(3, "", "lab/out")
	l.apply()
	first, second, out := l.links("pod1", "pod2"), l.links("pod3", "service2"), l.links("pod3", "ext")

	l.podsSet("s", 1, 2, 3)
	l.apply()
	l.alive("after widening", append(first, second...), true)

	l.podsSet("s", 3)
	l.narrowed = []netip.Addr{labAddr(0, 1), labAddr(1, 1)}
	l.apply()
	l.alive("removed from the set", first, false)
	l.alive("still in the set", second, true)

	l.policy("lab/out", nil, rulesTo(l.podsSet("two", 2)))
	l.narrowed = []netip.Addr{labAddr(0, 3), labAddr(1, 3)}
	l.apply()
	l.alive("egress no longer allowed", out, false)
	l.alive("egress still allowed", second, true)

	// The answers of a connection are judged like its requests: by who opened it.
	l.policy("lab/p", nil, nil)
	l.narrowed = []netip.Addr{labAddr(0, 2), labAddr(1, 2)}
	l.apply()
	l.alive("a policy without rules", second, false)
}

// TestRepliesAreCut has a server that sends on its own, over UDP: after a narrowing nothing gets to the client, although
// the client opened the connection, and what the client sends later does not get to the server as a reply.
func TestRepliesAreCut(t *testing.T) {
	l := newLab(t)
	l.policy("lab/p", everyone, nil)
	l.labPod(2, "lab/p", "")
	l.apply()
	for f := range families {
		at := netip.AddrPortFrom(labAddr(f, 2), 7777)
		var server *net.UDPConn
		var client net.Conn
		err := errors.Join(
			l.pods[2].Do(func() (err error) { server, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(at)); return err }),
			l.pods[1].Do(func() (err error) { client, err = net.Dial("udp", at.String()); return err }))
		must(t, err)
		defer server.Close()
		defer client.Close()
		var from netip.AddrPort
		ask := func(wanted bool) error {
			_ = server.SetReadDeadline(time.Now().Add(wait(wanted)))
			if _, err := client.Write([]byte{1}); err != nil {
				return err
			}
			_, asker, err := server.ReadFromUDPAddrPort(make([]byte, 1))
			if err == nil {
				from = asker
			}
			return err
		}
		push := func(wanted bool) error {
			if _, err := server.WriteToUDPAddrPort([]byte{1}, from); err != nil {
				return err
			}
			_ = client.SetReadDeadline(time.Now().Add(wait(wanted)))
			_, err := client.Read(make([]byte, 1))
			return err
		}
		if err := errors.Join(ask(true), push(true)); err != nil {
			t.Fatalf("%s before: %v", families[f].table, err)
		}
		l.policy("lab/p", nil, nil)
		l.narrowed = []netip.Addr{labAddr(f, 2)}
		l.apply()
		if push(false) == nil || ask(false) == nil {
			t.Errorf("%s: a reply, or a question after it, got through after the narrowing", families[f].table)
		}
		l.policy("lab/p", everyone, nil)
		l.apply()
		if err := push(true); err != nil {
			t.Errorf("%s after the policy allows it again: %v", families[f].table, err)
		}
	}
}

// TestAllConnectionsAreJudgedAgain has more narrowed addresses than the set holds.
func TestAllConnectionsAreJudgedAgain(t *testing.T) {
	l := newLab(t)
	l.policy("lab/p", everyone, nil)
	l.labPod(2, "lab/p", "")
	l.apply()
	open := l.links("pod1", "pod2")
	l.policy("lab/p", nil, nil)
	for i := range maxRechecked + 1 {
		l.narrowed = append(l.narrowed, netip.AddrFrom4([4]byte{172, 16, byte(i >> 8), byte(i)}), netip.MustParseAddr(fmt.Sprintf("fd11::%x", i+1)))
	}
	l.apply()
	l.alive("all are judged again", open, false)
	l.expect([]string{"pod2 pod1", "node pod2"}, []string{"pod1 pod2"})
}

// TestErrorsOfConnections sends to a port without a server: the ICMP error comes back,
// although the pod that sends it may open no connection.
//
// Policy behaviour: 36.
func TestErrorsOfConnections(t *testing.T) {
	l := newLab(t)
	l.policy("lab/in", everyone, nil)
	l.policy("lab/out", nil, nil)
	l.labPod(2, "lab/in", "lab/out")
	l.apply()
	for f := range families {
		_, err := dial(l.pods[1], "udp", netip.Addr{}, netip.AddrPortFrom(labAddr(f, 2), 9), wait(true))
		if !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: %v, want an ICMP error", families[f].table, err)
		}
	}
	l.expect([]string{"pod1 pod2"}, []string{"pod2 pod1"})
}

// TestUntrackedPackets: to the node, which answers as NodeLocal DNSCache does, they are judged by
// their headers; between pods with policies they are dropped.
func TestUntrackedPackets(t *testing.T) {
	l := newLab(t)
	l.node.Nft(t, `table inet raw {
		chain pre {
			type filter hook prerouting priority raw
			th dport 8080 notrack
			th sport 8080 notrack
		}
		chain out {
			type filter hook output priority raw
			th sport 8080 notrack
			th dport 8080 notrack
		}
	}`)
	toNode := []model.Rule{{Blocks: blocks("192.0.2.1/32", "2001:db8::1/128"), Ports: ports("tcp 8080", "udp 8080")}}
	l.test(t, []packetTest{
		{"ingress alone is isolated", func() {
			l.policy("lab/p", nil, nil)
			l.labPod(1, "lab/p", "")
		}, []string{"pod1 node"}, []string{"pod2 pod1", "pod1 pod2", "pod1 ext"}},
		{"egress to the node", func() {
			l.policy("lab/p", nil, toNode)
			l.labPod(1, "", "lab/p")
		}, []string{"pod1 node"}, []string{"pod1 pod2", "pod1 ext"}},
		{"egress to another port of the node", func() {
			l.policy("lab/p", nil, []model.Rule{{Blocks: blocks("192.0.2.1/32", "2001:db8::1/128"), Ports: ports("tcp 53", "udp 53")}})
			l.labPod(1, "", "lab/p")
		}, []string{"pod2 node"}, []string{"pod1 node"}},
		{"no egress", func() {
			l.policy("lab/p", nil, nil)
			l.labPod(1, "", "lab/p")
		}, []string{"pod2 node", "pod2 pod3"}, []string{"pod1 node", "pod1 pod2", "pod2 pod1"}},
		{"ingress from a pod that is not isolated", func() {
			l.policy("lab/p", rulesTo(l.podsSet("s", 1), "tcp 8080", "udp 8080"), nil)
			l.labPod(2, "lab/p", "")
		}, []string{"node pod2"}, []string{"pod1 pod2", "pod3 pod2", "ext pod2"}},
	})
}

// TestUnknownPods has addresses of the node's PodCIDRs that no pod is known for.
//
// Policy behaviour: 49.
func TestUnknownPods(t *testing.T) {
	l := newLab(t, func(c *Config) { c.Start = StartDeny })
	l.fixture.node = &model.Node{PodCIDRs: prefixes("10.244.0.0/16", "fd00:10:244::/48")}
	l.labPod(2, "", "")
	l.apply()
	l.expect([]string{"node pod1", "pod1 node", "pod2 ext", "ext pod2"}, []string{"pod1 pod2", "pod2 pod1", "pod1 ext", "ext pod1"})
	l.labPod(1, "", "")
	l.apply()
	l.expect([]string{"pod1 pod2", "pod2 pod1"}, []string{"pod3 pod1"})
}
