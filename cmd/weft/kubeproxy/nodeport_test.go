package kubeproxy

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// peer is what kube-proxy 1.37 in nftables mode does with flows to NodePorts on an address, by
// expandNodePortAddressKeywords, NewNodePortAddresses and localhostNodePortRejectProtocols. It differs as
// rows 22 and 23 say.
func peer(words []string, gate *bool, node *model.Node, to netip.Addr) string {
	var list, known []netip.Prefix
	for _, a := range node.Addresses {
		if a.IsValid() {
			known = append(known, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	for _, w := range words {
		switch w {
		case "primary":
			list = append(list, known...)
		case "localhost":
			list = append(list, netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"))
		case "all":
			list = append(list, netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0"))
		default:
			list = append(list, netip.MustParsePrefix(w))
		}
	}
	explicit, contained := false, len(list) == 0
	for _, p := range list {
		if p.Addr().Is4() == to.Is4() {
			explicit = explicit || p.Addr().IsLoopback()
			contained = contained || p.Contains(to)
		}
	}
	switch {
	case !to.IsLoopback():
		return fmt.Sprint(contained)
	case gate != nil && !*gate:
		return "nothing"
	case explicit:
		return "tcp served, udp rejected"
	case gate != nil:
		return "tcp rejected, udp rejected"
	default:
		return "nothing"
	}
}

// TestNodePortWords compares all subsets of words and a CIDR with kube-proxy.
//
// Behaviour: 20, 21, 22, 23, 24, 178, 179.
func TestNodePortWords(t *testing.T) {
	addrs := func(texts ...string) (out [model.NumFamilies]netip.Addr) {
		for _, text := range texts {
			a := netip.MustParseAddr(text)
			out[model.FamilyOf(a)] = a
		}
		return out
	}
	all := []string{"primary", "localhost", "all", "192.0.2.0/24"}
	nodes := []*model.Node{{}, {Addresses: addrs("198.51.100.1")}, {Addresses: addrs("198.51.100.1", "2001:db8::1")}}
	to := []string{"198.51.100.1", "198.51.100.2", "192.0.2.1", "127.0.0.1", "2001:db8::1", "2001:db8::2", "::1"}
	for subset := 1; subset < 1<<len(all); subset++ {
		var words []string
		for i, w := range all {
			if subset>>i&1 == 1 {
				words = append(words, w)
			}
		}
		for _, gate := range []*bool{nil, new(false), new(true)} {
			args := []string{"--proxy-mode=nftables", "--nodeport-addresses=" + strings.Join(words, ",")}
			if gate != nil {
				args = append(args, fmt.Sprintf("--feature-gates=%s=%t", localhostNodePorts, *gate))
			}
			s := fromArgs(t, args...)
			if len(s.Warnings) > 0 {
				t.Errorf("%q: warnings %q", args, s.Warnings)
			}
			for _, node := range nodes {
				for _, a := range to {
					a := netip.MustParseAddr(a)
					if got, want := serves(s, node, a), peer(words, gate, node, a); got != want {
						t.Errorf("%q, node %v, %s: %s, want %s", args, node.Addresses, a, got, want)
					}
				}
			}
		}
	}
}

func serves(s *Settings, node *model.Node, to netip.Addr) string {
	f := model.FamilyOf(to)
	if to.IsLoopback() {
		return map[model.LoopbackMode]string{
			model.LoopbackIgnored: "nothing", model.LoopbackServed: "tcp served, udp rejected", model.LoopbackRejected: "tcp rejected, udp rejected",
		}[s.NodePortAddresses.LoopbackModes(s.LoopbackNodePorts)[f]]
	}
	of := s.NodePortAddresses.Of(node, f)
	contained := of.All
	for _, p := range of.Prefixes {
		contained = contained || p.Contains(to)
	}
	return fmt.Sprint(contained)
}
