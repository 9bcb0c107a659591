package services

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

// TestDetection checks every DetectMode: which clients keep their source towards a
// ClusterIP (s1), and leave this node in spite of the external policy Local. s4 has a
// local endpoint, s5 has none.
//
// Behaviour: 53, 85, 86, 87, 88, 90, 91.
func TestDetection(t *testing.T) {
	type rows = []flow
	shortcuts := rows{
		{"pod1", "lb 4", "pod2 pod3 kept"}, {"pod1", "nodeport 4", "pod2 pod3 kept"}, {"pod1", "lb 5", "pod2 kept"},
		{"node", "lb 4", "pod2 pod3 masq"}, {"node", "nodeport 5", "pod2 masq"}, {"ext", "lb 4", "pod3 kept"}, {"ext", "nodeport 5", "dropped"},
	}
	known := append(rows{
		{"pod1", "cluster 1", "pod2 pod3 kept"}, {"node", "cluster 1", "pod2 pod3 masq"}, {"ext", "cluster 1", "pod2 pod3 masq"},
	}, shortcuts...)
	// pod1 is none of the pods that are known.
	stranger := rows{
		{"pod1", "cluster 1", "pod2 pod3 masq"}, {"node", "cluster 1", "pod2 pod3 masq"}, {"ext", "cluster 1", "pod2 pod3 masq"},
		{"pod1", "lb 4", "pod3 kept"}, {"pod1", "nodeport 5", "dropped"}, {"node", "lb 5", "pod2 masq"},
	}
	for name, tt := range map[string]struct {
		detect render.Detect
		edit   func(*render.Config)
		flows  rows
	}{
		"cidrs":            {detect: render.Detect{CIDRs: podCIDRs}, flows: known},
		"node":             {detect: render.Detect{Mode: render.DetectNode}, flows: known},
		"interface":        {detect: render.Detect{Mode: render.DetectInterface, Interface: "pod1"}, flows: known},
		"other interface":  {detect: render.Detect{Mode: render.DetectInterface, Interface: "pod"}, flows: stranger},
		"interface prefix": {detect: render.Detect{Mode: render.DetectInterfacePrefix, Interface: "pod"}, flows: known},
		"other prefix":     {detect: render.Detect{Mode: render.DetectInterfacePrefix, Interface: "pod10"}, flows: stranger},
		"other cidrs":      {detect: render.Detect{CIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24"), netip.MustParsePrefix("10.1.0.0/24"), netip.MustParsePrefix("fd01::/64")}}, flows: stranger},
		"none": {flows: rows{
			{"pod1", "cluster 1", "pod2 pod3 kept"}, {"node", "cluster 1", "pod2 pod3"}, {"ext", "cluster 1", "pod2 pod3 kept"},
			{"pod1", "lb 4", "pod3 kept"}, {"pod1", "lb 5", "dropped"}, {"node", "lb 4", "pod2 pod3 masq"}, {"ext", "lb 1", "pod2 pod3 masq"},
		}},
		"masquerade all": {detect: render.Detect{CIDRs: podCIDRs}, edit: func(c *render.Config) { c.MasqueradeAll, c.MasqueradeBit = true, 31 },
			flows: append(rows{{"pod1", "cluster 1", "pod2 pod3 masq"}, {"ext", "cluster 1", "pod2 pod3 masq"}}, shortcuts...)},
		"masquerade all and no detection": {edit: func(c *render.Config) { c.MasqueradeAll, c.MasqueradeBit = true, 0 },
			flows: rows{{"pod1", "cluster 1", "pod2 pod3 masq"}, {"pod1", "nodeport 5", "dropped"}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.start(t, cast(), func(cfg *render.Config) {
				cfg.Detect = tt.detect
				if tt.edit != nil {
					tt.edit(cfg)
				}
			})
			c.check(t, tt.flows)
		})
	}
}

// TestPodCIDRChange: other CIDRs of the node hold at once, and nothing else is written.
//
// Behaviour: 90, 92.
func TestPodCIDRChange(t *testing.T) {
	c := newCluster(t)
	_, p := c.start(t, cast(), func(cfg *render.Config) { cfg.Detect = render.Detect{Mode: render.DetectNode} })
	c.check(t, []flow{{"pod1", "cluster 1", "pod2 pod3 kept"}, {"pod1", "lb 5", "pod2 kept"}})
	n := thisNode()
	n.PodCIDRs = model.Prefixes{{netip.MustParsePrefix("10.244.2.0/24")}, {netip.MustParsePrefix("fd00:10:244:2::/64")}}
	u := p.publish(t, model.Changes{Node: n})
	publishtest.Equal(t, fmt.Sprintf("%d elements added, %d removed: want chains alone", u.Added, u.Removed), u.Added+u.Removed, 0)
	c.check(t, []flow{{"pod1", "cluster 1", "pod2 pod3 masq"}, {"pod2", "cluster 1", "pod2 pod3 kept"}, {"pod1", "lb 5", "dropped"}, {"pod2", "lb 4", "pod2 pod3"}})
	p.publish(t, model.Changes{Node: thisNode()})
	c.check(t, []flow{{"pod1", "cluster 1", "pod2 pod3 kept"}})
}

// TestServiceCIDRChange: other ranges hold at once.
//
// Behaviour: 15, 16, 17.
func TestServiceCIDRChange(t *testing.T) {
	c := newCluster(t)
	_, p := c.start(t, cast())
	c.check(t, []flow{{"pod1", "cluster 99", "dropped"}, {"node", "cluster 99", "dropped"}})
	p.publish(t, model.Changes{ServiceCIDRs: &model.Prefixes{
		{netip.MustParsePrefix("10.96.0.0/27"), netip.MustParsePrefix("10.96.0.128/25")}, {netip.MustParsePrefix("fd00:10:96::/123")},
	}})
	c.check(t, []flow{{"pod1", "cluster 99", "world"}, {"node", "cluster 99", "world"}, {"pod1", "cluster 1", "pod2 pod3"}, {"pod1", "cluster 2", "rejected"}})
	p.publish(t, model.Changes{ServiceCIDRs: &model.Prefixes{}})
	c.check(t, []flow{{"pod1", "cluster 25", "world"}, {"pod1", "cluster 1:81", "rejected"}})
	p.publish(t, model.Changes{ServiceCIDRs: serviceRanges()})
	c.check(t, []flow{{"pod1", "cluster 99", "dropped"}})
}

// TestNodePortDetails: a VIP goes before a NodePort, no port is opened for a
// NodePort, an address that the node gets later answers, and the loopback never does.
//
// Behaviour: 20, 21, 24, 27, 28, 29, 30, 31.
func TestNodePortDetails(t *testing.T) {
	c := newCluster(t)
	vip := newService(20, "3")
	for i := range vip.Ports {
		p := &vip.Ports[i]
		p.Number, p.NodePort = nodePortOf(1), 0
		p.External = [2][]model.External{{{Addr: nodeAddr[0]}}, {{Addr: nodeAddr[1]}}}
	}
	_, p := c.start(t, []*model.Service{newService(1, "2*"), newService(4, "2*"), vip}, func(cfg *render.Config) {
		cfg.NodePortAddresses = model.NodePorts(anywhere[:]...)
	})
	c.check(t, []flow{{"ext", "nodeport 1", "pod3 masq"}, {"node", "nodeport 1", "pod3 masq"}, {"ext", "nodeport 4", "pod2 masq"}, {"node", "nodeport 4", "pod2 masq"}})
	p.drop(t, "s20")
	c.check(t, []flow{{"ext", "nodeport 1", "pod2 masq"}})
	for _, at := range []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1")} {
		if pod, _, err := ask(c.node, "tcp", netip.AddrPortFrom(at, nodePortOf(1)).String()); err == nil {
			t.Errorf("%s answers on %s", pod, at)
		}
	}
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6"} {
		// A process's own view of the network would be the test's.
		for line := range strings.Lines(c.node.Run(t, "cat", "/proc/thread-self/net/"+table)) {
			if own := strings.Fields(line)[1]; strings.HasSuffix(own, fmt.Sprintf(":%04X", nodePortOf(1))) {
				t.Errorf("a socket has the NodePort: %s", line)
			}
		}
	}
	for f, late := range []string{"192.0.2.77", "2001:db8::77"} {
		c.node.Run(t, "ip", "addr", "add", late+[]string{"/24", "/64"}[f], "dev", "ext", "nodad")
		pod, _, err := ask(c.ext, "tcp", netip.AddrPortFrom(netip.MustParseAddr(late), nodePortOf(4)).String())
		if err != nil || pod != "pod2" {
			t.Errorf("%s: %q answers, %v", late, pod, err)
		}
	}
	if list := c.node.ListRuleset(t); strings.Contains(list, fmt.Sprintf("tcp . %d", nodePortOf(20))) {
		t.Errorf("a Service without NodePort has one:\n%s", list)
	}
}

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
