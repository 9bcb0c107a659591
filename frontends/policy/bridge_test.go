package policy

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/frontends/policy/localstate"
	"github.com/weft-proxy/weft/frontends/policy/model"
)

// bridgeNetworks are those of cni0 for pods, and of br0, over which the default route leads.
func bridgeNetworks(name string) []netip.Prefix {
	return map[string][]netip.Prefix{
		"br0": {netip.MustParsePrefix("192.168.0.7/24")}, "cni0": {netip.MustParsePrefix("10.244.1.1/24"), netip.MustParsePrefix("fd00:10:244:1::1/64")},
	}[name]
}

// TestBridges names bridges that connect pods and whose packets do not pass the rules.
//
// Policy behaviour: 41.
func TestBridges(t *testing.T) {
	h := host{t.TempDir(), t.TempDir(), bridgeNetworks}
	have := [2]bool{true, true}
	pods := []netip.Addr{netip.MustParseAddr("10.244.1.5"), netip.MustParseAddr("fd00:10:244:1::5")}
	check := func(what string, have [2]bool, pods []netip.Addr, want string) {
		t.Helper()
		bridges, settings := h.unfilteredBridges(have, func() []netip.Addr { return pods })
		if got := strings.Trim(fmt.Sprint(bridges, settings), "[] "); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	check("without a bridge", have, pods, "")
	for _, bridge := range []string{"cni0", "br0", "docker0"} {
		put(t, h.sys+"/class/net/"+bridge+"/bridge/x", "")
	}
	const both = "cni0] [net.bridge.bridge-nf-call-iptables net.bridge.bridge-nf-call-ip6tables"
	check("without settings", have, pods, both)
	check("of a node without IPv6", [2]bool{true, false}, pods, "cni0] [net.bridge.bridge-nf-call-iptables")
	put(t, h.proc+"/sys/net/bridge/bridge-nf-call-iptables", "1\n")
	put(t, h.proc+"/sys/net/bridge/bridge-nf-call-ip6tables", "0\n")
	check("with one setting", have, pods, "cni0] [net.bridge.bridge-nf-call-ip6tables")
	put(t, h.proc+"/sys/net/bridge/bridge-nf-call-iptables", "0\n")
	for _, other := range []string{"10.244.2.5", "192.0.2.1", "fd00:10:244:2::5"} {
		check("pod "+other+" is not on a bridge", have, []netip.Addr{netip.MustParseAddr(other)}, "")
	}
	put(t, h.proc+"/sys/net/bridge/bridge-nf-call-iptables", "1\n")
	put(t, h.proc+"/sys/net/bridge/bridge-nf-call-ip6tables", "1\n")
	check("with both settings", have, pods, "")
}

// TestRoutedPods: a pod whose interface is routed is on no bridge.
func TestRoutedPods(t *testing.T) {
	var s localstate.State
	for i, link := range []model.Link{{}, {Name: "port", Bridged: true}, {Name: "veth1"}} {
		s.Pods = append(s.Pods, localstate.PodState{Pod: &model.Pod{Addresses: []netip.Addr{netip.AddrFrom4([4]byte{10, 244, 1, byte(i)})}, Link: link}})
	}
	if got := fmt.Sprint(podAddresses(s)); got != "[10.244.1.0 10.244.1.1]" {
		t.Error(got)
	}
}

// TestBridgeWarning warns once, and again if the bridges differ.
func TestBridgeWarning(t *testing.T) {
	var log bytes.Buffer
	f := &Frontend{state: newLab(t).state, have: [2]bool{true, false}}
	f.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	h := host{t.TempDir(), t.TempDir(), bridgeNetworks}
	warned := f.warnBridges(h, "")
	put(t, h.sys+"/class/net/cni0/bridge/x", "")
	for range 3 {
		warned = f.warnBridges(h, warned)
	}
	if n := strings.Count(log.String(), "bridges=cni0"); n != 1 {
		t.Errorf("%d warnings: %s", n, &log)
	}
}
