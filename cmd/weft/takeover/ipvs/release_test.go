package ipvs

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/cmd/weft/sockdiag"
)

// fakeHost records changes.
type fakeHost struct {
	calls []string
	// fail names the object that cannot be removed.
	fail      string
	processes []sockdiag.Socket
}

var errFake = errors.New("no permission")

func (h *fakeHost) call(verb, object string) error {
	if object == h.fail && verb != "flows" && verb != "device" {
		return errFake
	}
	h.calls = append(h.calls, strings.TrimSpace(verb+" "+object))
	return nil
}

func (h *fakeHost) connections(context.Context) (map[end]int, error) {
	return map[end]int{{protocols["TCP"], webAddr, 80}: 1, {protocols["TCP"], foundAddr, 80}: 1}, nil
}
func (h *fakeHost) deleteServer(s Server) error { return h.call("server", s.Name) }
func (h *fakeHost) deleteFlows(_ context.Context, f func(end) bool) error {
	for _, at := range []string{"10.96.0.10:53", "10.96.0.10:80", "192.0.2.2:30000", "192.0.2.100:80"} {
		for _, p := range []string{"UDP", "TCP"} {
			if f(endOf(protocols[p], netip.MustParseAddrPort(at))) {
				_ = h.call("flows", p+" "+at)
			}
		}
	}
	return nil
}
func (h *fakeHost) sockets(f func(netip.Addr) bool) (out []sockdiag.Socket, err error) {
	return slices.DeleteFunc(slices.Clone(h.processes), func(s sockdiag.Socket) bool { return !f(s.Local.Addr()) }), nil
}
func (h *fakeHost) destroySocket(s sockdiag.Socket) error {
	return h.call("socket", s.Local.String())
}
func (h *fakeHost) deleteAddress(a netip.Addr) error { return h.call("address", a.String()) }
func (h *fakeHost) deleteDevice() error              { return h.call("device", "") }
func (h *fakeHost) destroySet(name string) error     { return h.call("set", name) }

func server(protocol, at string) Server {
	return Server{end: endOf(protocols[protocol], netip.MustParseAddrPort(at)), Name: protocol + " " + at}
}

var fromAddress = sockdiag.Socket{Local: netip.MustParseAddrPort("10.96.0.10:40000"), Remote: netip.MustParseAddrPort("10.96.0.10:80")}

// TestRelease goes through the order of the removal, which waits for connections unless it cuts them.
func TestRelease(t *testing.T) {
	busy := []Server{server("TCP", "10.96.0.10:80"), server("UDP", "10.96.0.10:53"), server("TCP", "192.0.2.2:30000")}
	addrs := []netip.Addr{webAddr, sixAddr}
	for _, test := range []struct {
		what    string
		left    Left
		host    fakeHost
		cut     bool
		calls   string
		removed string
		waiting string
		err     bool
	}{
		{
			what: "idle virtual servers go", left: Left{Servers: busy, Addresses: addrs},
			calls:   "flows UDP 10.96.0.10:53, flows TCP 192.0.2.2:30000, server UDP 10.96.0.10:53, server TCP 192.0.2.2:30000, flows UDP 10.96.0.10:53, flows TCP 192.0.2.2:30000",
			removed: "2 virtual servers of IPVS", waiting: "1 connections through IPVS go on",
		},
		{
			what: "a busy one stays", left: Left{Servers: busy[:1], Addresses: addrs}, waiting: "1 connections through IPVS go on",
		},
		{
			what: "it is cut", left: Left{Servers: busy[:1], Addresses: addrs}, cut: true,
			calls:   "flows TCP 10.96.0.10:80, server TCP 10.96.0.10:80, flows TCP 10.96.0.10:80",
			removed: "1 virtual servers of IPVS", waiting: "the addresses of kube-ipvs0 go next",
		},
		{
			what: "one fails", left: Left{Servers: busy, Addresses: addrs}, host: fakeHost{fail: "UDP 10.96.0.10:53"}, cut: true, err: true,
			calls: "flows UDP 10.96.0.10:53, flows TCP 10.96.0.10:80, flows TCP 192.0.2.2:30000, server TCP 10.96.0.10:80, server TCP 192.0.2.2:30000, " +
				"flows UDP 10.96.0.10:53, flows TCP 10.96.0.10:80, flows TCP 192.0.2.2:30000",
			removed: "2 virtual servers of IPVS",
		},
		{
			what: "the source of a process stays", left: Left{Addresses: addrs}, host: fakeHost{processes: []sockdiag.Socket{fromAddress}},
			calls: "address fd00:10:96::a", removed: "1 addresses of kube-ipvs0", waiting: "1 connections of processes of this node have a source on kube-ipvs0",
		},
		{
			what: "its connection is cut", left: Left{Addresses: addrs}, host: fakeHost{processes: []sockdiag.Socket{fromAddress}}, cut: true,
			calls:   "socket 10.96.0.10:40000, flows UDP 10.96.0.10:53, flows TCP 10.96.0.10:53, flows UDP 10.96.0.10:80, flows TCP 10.96.0.10:80, address 10.96.0.10, address fd00:10:96::a, device",
			removed: "2 addresses of kube-ipvs0, device kube-ipvs0",
		},
		{
			what: "an address of another program keeps the device", left: Left{Addresses: addrs[1:], shared: true},
			calls: "address fd00:10:96::a", removed: "1 addresses of kube-ipvs0",
		},
		{
			what: "an address fails", left: Left{Addresses: addrs[1:]}, host: fakeHost{fail: "fd00:10:96::a"}, err: true,
		},
	} {
		t.Run(test.what, func(t *testing.T) {
			l := test.left
			l.host, l.device = &test.host, true
			removed, waiting, err := l.Release(t.Context(), test.cut)
			if got := strings.Join(test.host.calls, ", "); got != test.calls {
				t.Errorf("did %s\nwant %s", got, test.calls)
			}
			if got := strings.Join(removed, ", "); got != test.removed || waiting != test.waiting || (err != nil) != test.err {
				t.Errorf("removed %q, waiting %q, %v; want %q, %q", got, waiting, err, test.removed, test.waiting)
			}
			if err != nil && (!errors.Is(err, errFake) || !strings.Contains(err.Error(), test.host.fail)) {
				t.Errorf("the error does not name %s: %v", test.host.fail, err)
			}
		})
	}
}

// TestDestroySets continues after a failure, and names the set.
func TestDestroySets(t *testing.T) {
	h := &fakeHost{fail: "KUBE-CLUSTER-IP"}
	l := decide(nil, nil, kubeSets)
	l.host = h
	removed, err := l.DestroySets()
	if got := strings.Join(append(removed, h.calls...), ", "); got != "2 sets of ipset, set KUBE-IPVS-IPS, set KUBE-NODE-PORT-TCP" || !errors.Is(err, errFake) || !strings.Contains(err.Error(), "KUBE-CLUSTER-IP") {
		t.Errorf("removed %s, %v", got, err)
	}
}
