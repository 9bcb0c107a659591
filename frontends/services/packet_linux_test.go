package services

import (
	"fmt"
	"net/netip"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weft-proxy/weft/frontends/services/model"
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
