package links

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

type want = map[string]model.Link

// TestRouted follows routes to pods: those that exist at the start, new ones, several tables,
// and those that are replaced or end.
func TestRouted(t *testing.T) {
	host := nfttest.New(t)
	routedPod(t, host, "pod1")
	routedPod(t, host, "pod2")
	pod1, pod2 := model.Link{Name: "pod1"}, model.Link{Name: "pod2"}
	ip(t, host, "route add 10.0.0.1 dev pod1", "route add fd00::1 dev pod1")
	f := follow(t, host, 0)
	f.expect(t, want{"10.0.0.1": pod1, "fd00::1": pod1})

	ip(t, host, "route add 169.254.172.5 dev pod1", "route add 10.0.0.2 dev pod2", "route add fd00::2 dev pod2")
	f.expect(t, want{"10.0.0.1": pod1, "fd00::1": pod1, "169.254.172.5": pod1, "10.0.0.2": pod2, "fd00::2": pod2})

	// Routes that do not lead to a pod.
	bridge(t, host)
	ip(t, host, "addr add 10.2.0.1/24 dev pod2", "route add 10.3.0.0/24 dev pod1", "route add 10.3.0.1 via 10.2.0.2", "route add 10.3.0.2 dev lo",
		"route add 10.3.0.3 dev br0", "route add blackhole 10.3.0.4", "route add fd00:3::/64 dev pod1", "route add unreachable fd00:3::1",
		"route add 10.3.0.6 tos 8 dev pod1", "route add 10.3.0.7 nexthop dev pod1 nexthop dev pod2", "nexthop add id 7 dev pod1 ", "route add 10.3.0.8 nhid 7")
	f.settled(t, host)
	f.expect(t, want{"10.0.0.1": pod1, "fd00::1": pod1, "169.254.172.5": pod1, "10.0.0.2": pod2, "fd00::2": pod2})

	// The table main wins, then the metric.
	ip(t, host, "route add 10.0.0.1 dev pod2 table 100", "route add 10.0.0.1 dev pod2 metric 9", "route add fd00::1 dev pod2 table 100",
		"route add 10.0.0.9 dev pod1 table 200")
	f.expectOne(t, "10.0.0.9", pod1)
	f.expectOne(t, "10.0.0.1", pod1)
	ip(t, host, "route del 10.0.0.1 dev pod1", "route del fd00::1 dev pod1", "route del 10.0.0.9 table 200")
	f.expect(t, want{"10.0.0.1": pod2, "fd00::1": pod2, "169.254.172.5": pod1, "10.0.0.2": pod2, "fd00::2": pod2})
	ip(t, host, "route del 10.0.0.1 dev pod2 metric 9", "route change 10.0.0.1 dev pod1 table 100", "route replace fd00::1 dev pod1 table 100",
		"route replace 10.0.0.2 dev pod1", "route replace blackhole fd00::2")
	f.expect(t, want{"10.0.0.1": pod1, "fd00::1": pod1, "169.254.172.5": pod1, "10.0.0.2": pod1})
	ip(t, host, "route replace blackhole 10.0.0.2")
	f.expect(t, want{"10.0.0.1": pod1, "fd00::1": pod1, "169.254.172.5": pod1})

	// The kernel removes the routes of an interface that is down or gone.
	ip(t, host, "link set pod1 down")
	f.expect(t, want{})
	ip(t, host, "link set pod1 up", "route add 10.0.0.1 dev pod1", "route add fd00::1 dev pod1")
	f.expect(t, want{"10.0.0.1": pod1, "fd00::1": pod1})
	ip(t, host, "link del pod1")
	f.expect(t, want{})
	routedPod(t, host, "pod1")
	ip(t, host, "route add 10.0.0.1 dev pod1")
	f.expect(t, want{"10.0.0.1": pod1})
}

// TestRename follows an interface with a route to another name, and a port of a bridge.
func TestRename(t *testing.T) {
	host := nfttest.New(t)
	routedPod(t, host, "pod1")
	bridge(t, host)
	bridgedPod(t, host, "port1", "10.1.0.2")
	ip(t, host, "route add 10.0.0.1 dev pod1")
	f := follow(t, host, 0)
	f.expect(t, want{"10.0.0.1": {Name: "pod1"}, "10.1.0.2": {Name: "port1", Bridged: true}})
	// Earlier kernels rename only what is down.
	ip(t, host, "link set pod1 down", "link set pod1 name pod1new", "link set pod1new up", "route add 10.0.0.1 dev pod1new",
		"link set port1 down", "link set port1 name port1new", "link set port1new up")
	f.expect(t, want{"10.0.0.1": {Name: "pod1new"}, "10.1.0.2": {Name: "port1new", Bridged: true}})
	// Another interface gets the first name.
	routedPod(t, host, "pod1")
	ip(t, host, "route add 10.0.0.2 dev pod1")
	f.expect(t, want{"10.0.0.1": {Name: "pod1new"}, "10.0.0.2": {Name: "pod1"}, "10.1.0.2": {Name: "port1new", Bridged: true}})
}

// TestBridged follows pods on a bridge, one of them before the start, and one that announces the
// addresses of others.
func TestBridged(t *testing.T) {
	host := nfttest.New(t)
	bridge(t, host)
	port1, port2, port3 := model.Link{Name: "port1", Bridged: true}, model.Link{Name: "port2", Bridged: true}, model.Link{Name: "port3", Bridged: true}
	first := bridgedPod(t, host, "port1", "10.1.0.2", "fd00:1::2")
	f := follow(t, host, 0)
	f.expect(t, want{"10.1.0.2": port1, "fd00:1::2": port1})
	hostile := bridgedPod(t, host, "port2", "10.1.0.3")
	f.expect(t, want{"10.1.0.2": port1, "fd00:1::2": port1, "10.1.0.3": port2})

	forge(t, host, hostile, "10.1.0.2")
	f.settled(t, host)
	f.expect(t, want{"10.1.0.2": port1, "fd00:1::2": port1, "10.1.0.3": port2})

	// An entry that the kernel forgets, and one for the port's own MAC, change nothing.
	ip(t, host, "neigh flush dev br0")
	f.settled(t, host)
	f.expect(t, want{"10.1.0.2": port1, "fd00:1::2": port1, "10.1.0.3": port2})

	// A pod with the same address on another port: it is known only after the old port has gone.
	ip(t, first, "link set eth0 down")
	third := bridgedPod(t, host, "port3", "10.1.0.2")
	forge(t, host, third, "10.1.0.2")
	f.settled(t, host)
	f.expect(t, want{"10.1.0.2": port1, "fd00:1::2": port1, "10.1.0.3": port2})
	ip(t, host, "link del port1")
	f.expect(t, want{"10.1.0.2": port3, "10.1.0.3": port2})

	// A route wins, and the port is back after it.
	routedPod(t, host, "pod1")
	ip(t, host, "route add 10.1.0.2 dev pod1")
	f.expect(t, want{"10.1.0.2": {Name: "pod1"}, "10.1.0.3": port2})
	ip(t, host, "route del 10.1.0.2 dev pod1")
	f.expect(t, want{"10.1.0.2": port3, "10.1.0.3": port2})

	ip(t, host, "link set port2 nomaster")
	f.expect(t, want{"10.1.0.2": port3})
	ip(t, host, "link set port2 master br0")
	send(t, host, "10.1.0.3")
	f.expect(t, want{"10.1.0.2": port3, "10.1.0.3": port2})
	ip(t, host, "link del br0")
	f.expect(t, want{})
}

// TestBridgeLearnsLate follows an address whose MAC the bridge forgot before the start. Some
// kernels have no bridges that filter VLANs.
func TestBridgeLearnsLate(t *testing.T) {
	for _, filters := range []bool{false, true} {
		host := nfttest.New(t)
		bridge(t, host)
		if filters {
			if _, err := host.Output("", "ip", "link", "set", "br0", "type", "bridge", "vlan_filtering", "1"); err != nil {
				t.Log(err)
				continue
			}
		}
		pod := bridgedPod(t, host, "port1", "10.1.0.2")
		f := follow(t, host, 0)
		f.expect(t, want{"10.1.0.2": {Name: "port1", Bridged: true}})
		ip(t, host, "link set port1 type bridge_slave learning off", "link set port1 type bridge_slave fdb_flush")
		late := follow(t, host, 0)
		late.expect(t, want{})
		ip(t, host, "link set port1 type bridge_slave learning on")
		send(t, pod, "10.1.0.1")
		late.expect(t, want{"10.1.0.2": {Name: "port1", Bridged: true}})
	}
}

// TestManyAddresses lets a pod announce more addresses than a pod has.
func TestManyAddresses(t *testing.T) {
	host := nfttest.New(t)
	bridge(t, host)
	f := follow(t, host, 0)
	hostile := bridgedPod(t, host, "port1", "10.1.0.2")
	f.expectOne(t, "10.1.0.2", model.Link{Name: "port1", Bridged: true})
	var addrs []string
	for i := range 2 * maxAddresses {
		addrs = append(addrs, fmt.Sprintf("10.1.0.%d", 100+i))
	}
	forge(t, host, hostile, addrs...)
	f.settled(t, host)
	if n := len(f.now()); n != maxAddresses {
		t.Errorf("a port has %d addresses, want %d", n, maxAddresses)
	}
	bridgedPod(t, host, "port2", "10.1.0.3")
	f.expectOne(t, "10.1.0.3", model.Link{Name: "port2", Bridged: true})
	ip(t, host, "link del port1", "link del port2")
	f.expect(t, want{})
	if n := strings.Count(f.log.String(), "64 addresses"); n != 1 {
		t.Errorf("logged %d times, want once", n)
	}
}

// TestLostMessages lets the socket overflow, twice.
func TestLostMessages(t *testing.T) {
	host := nfttest.New(t)
	bridge(t, host)
	routedPod(t, host, "pod1")
	routedPod(t, host, "pod2")
	bridgedPod(t, host, "port1", "10.1.0.2")
	hostile := bridgedPod(t, host, "port2", "10.1.0.3")
	ip(t, host, "route add 10.0.0.1 dev pod1", "route add 10.0.0.2 dev pod1", "route add 10.0.0.3 dev pod1")
	f := follow(t, host, 8<<10)
	links := want{"10.0.0.1": {Name: "pod1"}, "10.0.0.2": {Name: "pod1"}, "10.0.0.3": {Name: "pod1"},
		"10.1.0.2": {Name: "port1", Bridged: true}, "10.1.0.3": {Name: "port2", Bridged: true}}
	f.expect(t, links)

	f.gate.Lock()
	ip(t, host, "route replace 10.0.0.2 dev pod2", "route del 10.0.0.3 dev pod1")
	forge(t, host, hostile, "10.1.0.2")
	links["10.0.0.2"] = model.Link{Name: "pod2"}
	delete(links, "10.0.0.3")
	var routes []string
	for i := range 100 {
		routes = append(routes, fmt.Sprintf("route add 10.4.0.%d dev pod2", i))
		links[fmt.Sprintf("10.4.0.%d", i)] = model.Link{Name: "pod2"}
	}
	ip(t, host, routes...)
	f.gate.Unlock()
	f.expect(t, links)
	if !strings.Contains(f.log.String(), unix.ENOBUFS.Error()) {
		t.Errorf("no message was lost:\n%s", f.log.String())
	}
	for _, same := range []string{"10.0.0.1", "10.1.0.2", "10.1.0.3"} {
		if n := f.counts[netip.MustParseAddr(same)]; n != 1 {
			t.Errorf("%s was delivered %d times, want once", same, n)
		}
	}

	// Interfaces that go while messages are lost take their addresses with them.
	f.gate.Lock()
	ip(t, host, "link del port2", "link del pod1")
	ip(t, host, strings.Split(strings.ReplaceAll(strings.Join(routes, "\n"), " add ", " del "), "\n")...)
	f.gate.Unlock()
	f.expect(t, want{"10.0.0.2": {Name: "pod2"}, "10.1.0.2": {Name: "port1", Bridged: true}})
	if n := strings.Count(f.log.String(), unix.ENOBUFS.Error()); n != 1 {
		t.Errorf("logged %d times, want once:\n%s", n, f.log.String())
	}
}

// TestOddMessages applies real messages that are cut off, or have a byte changed.
func TestOddMessages(t *testing.T) {
	host := nfttest.New(t)
	bridge(t, host)
	bridgedPod(t, host, "port1", "10.1.0.2", "fd00:1::2")
	ip(t, host, "route add 10.0.0.1 dev port1", "route add fd00::1 dev port1")
	follow(t, host, 0).expectOne(t, "10.1.0.2", model.Link{Name: "port1", Bridged: true})
	if err := host.Do(func() error {
		table := newTable(func(string, error) {})
		for _, d := range dumps {
			messages, err := ask(d.request, unix.NLM_F_DUMP, d.data...)
			if err != nil {
				return err
			}
			for _, m := range messages {
				for i := range m {
					// A copy, so that reading past the end is seen.
					table.apply(d.answer, 0, append([]byte(nil), m[:i]...))
					for _, b := range []byte{0, 1, 255} {
						odd := append([]byte(nil), m...)
						odd[i] = b
						table.apply(d.answer, unix.NLM_F_REPLACE, odd)
						table.apply(d.answer+1, 0, odd)
					}
				}
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func TestNew(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("Deliver is not required")
	}
}

// TestAdopt has a tracker that starts when the kernel has forgotten the neighbours of a bridge.
func TestAdopt(t *testing.T) {
	host := nfttest.New(t)
	bridge(t, host)
	bridgedPod(t, host, "pod0", "10.1.0.10", "fd00:1::10")
	ip(t, host, "neigh flush dev br0", "link add other type veth peer name other-peer")
	f := follow(t, host, 0)
	f.expect(t, nil)
	f.tracker.Adopt(map[netip.Addr]string{
		netip.MustParseAddr("10.1.0.10"): "pod0", netip.MustParseAddr("fd00:1::10"): "pod0",
		netip.MustParseAddr("10.1.0.11"): "gone", netip.MustParseAddr("10.1.0.12"): "other",
	})
	f.expect(t, map[string]model.Link{"10.1.0.10": {Name: "pod0", Bridged: true}, "fd00:1::10": {Name: "pod0", Bridged: true}})
	// It stays until the port goes.
	ip(t, host, "link set pod0 nomaster")
	f.expect(t, nil)
}
