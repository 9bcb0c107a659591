package doctor

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestRoutes: a node without a route to a ClusterIP is told so, once for each address, and a route to
// the range of the ClusterIPs is enough.
func TestRoutes(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces)
	ns := nfttest.New(t)
	ns.Run(t, "ip", "link", "add", "d0", "up", "type", "veth", "peer", "name", "d1")
	ns.Run(t, "ip", "link", "set", "d1", "up")
	ns.Run(t, "ip", "address", "add", "192.0.2.1/24", "dev", "d0")
	ns.Run(t, "ip", "address", "add", "2001:db8::1/64", "dev", "d0", "nodad")
	port := func(number uint16, addrs ...string) (p model.Port) {
		p.Number = number
		for i, a := range addrs {
			p.ClusterIPs[i] = netip.MustParseAddr(a)
		}
		return p
	}
	n := &node{services: func() (*model.Snapshot, error) {
		return &model.Snapshot{Services: []*model.Service{
			{Ports: []model.Port{port(80, "10.96.0.10", "fd00:96::10"), port(53, "10.96.0.10", "fd00:96::10")}}, {Ports: []model.Port{port(443)}},
		}}, nil
	}}
	for _, tt := range []struct {
		route []string
		want  string
	}{
		{nil, "for 2 ClusterIPs: 10.96.0.10,fd00:96::10"},
		{[]string{"route", "add", "10.96.0.0/12", "dev", "d0"}, "for 1 ClusterIPs: fd00:96::10"},
		{[]string{"-6", "route", "add", "default", "via", "2001:db8::2"}, ""},
		{[]string{"route", "replace", "blackhole", "10.96.0.0/12"}, "for 1 ClusterIPs: 10.96.0.10"},
		{[]string{"route", "replace", "default", "via", "192.0.2.2"}, "for 1 ClusterIPs: 10.96.0.10"},
		{[]string{"route", "del", "blackhole", "10.96.0.0/12"}, ""},
	} {
		if tt.route != nil {
			ns.Run(t, "ip", tt.route...)
		}
		var found []Finding
		if err := ns.Do(func() error {
			found = (&check{"routes", checkRoutes}).examine(context.Background(), n)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		switch {
		case tt.want == "" && len(found) == 0:
		case len(found) == 1 && tt.want != "" && strings.Contains(found[0].Found, tt.want) && found[0].Severity == Error && strings.Contains(found[0].Remedy, "Add a default route"):
		default:
			t.Errorf("after ip %v: %+v, want %q", tt.route, found, tt.want)
		}
	}
}
