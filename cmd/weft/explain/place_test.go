package explain

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/frontends/services/model"
)

func TestChoosePort(t *testing.T) {
	http := model.Port{Name: "http", Protocol: model.TCP, Number: 80}
	dns := model.Port{Name: "dns", Protocol: model.UDP, Number: 53}
	one, two := &model.Service{Ports: []model.Port{http}}, &model.Service{Ports: []model.Port{http, dns}}
	for _, tt := range []struct {
		service    *model.Service
		text, want string
	}{
		{one, "", "http"},
		{one, "80", "http"},
		{two, "dns", "dns"},
		{two, "53", "dns"},
		{two, "", "the Service has several ports: add one of :http (80/tcp), :dns (53/udp)"},
		{two, "99", `the Service has no port "99"; it has http (80/tcp), dns (53/udp)`},
		{one, "ht", `the Service has no port "ht"; it has http (80/tcp)`},
	} {
		p, err := choosePort(tt.service, tt.text)
		if err == nil && p.Name != tt.want || err != nil && err.Error() != tt.want {
			t.Errorf("port %q: %+v, %v; want %s", tt.text, p, err, tt.want)
		}
		if err != nil && !errors.As(err, new(*cli.UsageError)) {
			t.Errorf("port %q: %T, want a UsageError", tt.text, err)
		}
	}
}

func TestPair(t *testing.T) {
	four, six := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")
	both := place{addrs: []netip.Addr{four, six}}
	for _, tt := range []struct {
		name     string
		from, to place
		six      bool
		src, dst netip.Addr
		err      string
	}{
		{"both have both", both, both, false, four, four, ""},
		{"IPv6 is preferred", both, both, true, six, six, ""},
		{"one has IPv6", both, place{addrs: []netip.Addr{six}}, false, six, six, ""},
		{"the node", place{node: true}, both, true, netip.Addr{}, six, ""},
		{"no family in common", place{addrs: []netip.Addr{four}}, place{addrs: []netip.Addr{six}}, false, netip.Addr{}, netip.Addr{}, "another IP family"},
	} {
		src, dst, err := pair(tt.from, tt.to, tt.six)
		if src != tt.src || dst != tt.dst || (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %s to %s, %v", tt.name, src, dst, err)
		}
	}
}

// TestPacket makes packets of each protocol: what is read from them is what they were made of.
func TestPacket(t *testing.T) {
	for _, addrs := range [][2]string{{"10.0.0.1", "10.0.0.2"}, {"fd00::1", "fd00::2"}} {
		for name, protocol := range protocols {
			f := flow{protocol: protocol}
			var sport, dport uint16
			if hasPorts(protocol) {
				sport, dport = 40000, 80
			}
			f.source, f.destination = netip.AddrPortFrom(netip.MustParseAddr(addrs[0]), sport), netip.AddrPortFrom(netip.MustParseAddr(addrs[1]), dport)
			for _, reply := range []bool{false, true} {
				if got := flowOf(f.packet(reply)); got != f {
					t.Errorf("%s: %+v, want %+v", name, got, f)
				}
			}
		}
	}
}

func TestEndpointOf(t *testing.T) {
	for _, tt := range []struct {
		candidate model.Candidate
		local     bool
		want      string
	}{
		{model.Candidate{Cluster: true}, false, ""},
		{model.Candidate{Excluded: model.NotReady}, false, "not ready"},
		{model.Candidate{Excluded: model.OtherZone}, false, "hinted to other zones"},
		{model.Candidate{Cluster: true}, true, "on another node (traffic policy Local)"},
		{model.Candidate{Endpoint: model.Endpoint{Local: true}, ForLocal: true, Excluded: model.OtherZone}, true, ""},
		{model.Candidate{Endpoint: model.Endpoint{Local: true}, Excluded: model.Terminating}, true, "terminating"},
	} {
		if got := endpointOf(tt.candidate, tt.local).Excluded; got != tt.want {
			t.Errorf("%+v, policy Local %t: excluded %q, want %q", tt.candidate, tt.local, got, tt.want)
		}
	}
}
