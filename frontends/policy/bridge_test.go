package policy

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
)

// The routes of a host with two bridges: cni0 for pods, and br0, over which the default route
// leads. This test is for machines whose bytes are in little-endian order.
const (
	routes4 = `Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT
br0 00000000 0100A8C0 0003 0 0 0 00000000 0 0 0
br0 0000A8C0 00000000 0001 0 0 0 00FFFFFF 0 0 0
cni0 0001F40A 00000000 0001 0 0 0 00FFFFFF 0 0 0
flannel.1 0002F40A 0002F40A 0003 0 0 0 00FFFFFF 0 0 0
veth1 0901F40A 00000000 0005 0 0 0 FFFFFFFF 0 0 0
`
	routes6 = `fd000010024400010000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     cni0
fd000010024400020000000000000000 40 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000100 00000001 00000000 00000001     cni0
short
zz000010024400020000000000000000 40 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000100 00000001 00000000 00000001     cni0
`
)

// TestBridges names bridges that connect pods and whose packets do not pass the rules.
//
// Policy behaviour: 41.
func TestBridges(t *testing.T) {
	h := host{sys: t.TempDir(), proc: t.TempDir()}
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
	check("without routes", have, pods, "")
	put(t, h.proc+"/net/route", routes4)
	put(t, h.proc+"/net/ipv6_route", routes6)
	const both = "cni0] [net.bridge.bridge-nf-call-iptables net.bridge.bridge-nf-call-ip6tables"
	check("without settings", have, pods, both)
	check("of a node without IPv6", [2]bool{true, false}, pods, "cni0] [net.bridge.bridge-nf-call-iptables")
	put(t, h.proc+"/sys/net/bridge/bridge-nf-call-iptables", "1\n")
	put(t, h.proc+"/sys/net/bridge/bridge-nf-call-ip6tables", "0\n")
	check("with one setting", have, pods, "cni0] [net.bridge.bridge-nf-call-ip6tables")
	put(t, h.proc+"/sys/net/bridge/bridge-nf-call-iptables", "0\n")
	for _, other := range []string{"10.244.1.9", "10.244.2.5", "192.0.2.1", "fd00:10:244:2::5"} {
		check("pod "+other+" is not on a bridge", have, []netip.Addr{netip.MustParseAddr(other)}, "")
	}
	put(t, h.proc+"/sys/net/bridge/bridge-nf-call-iptables", "1\n")
	put(t, h.proc+"/sys/net/bridge/bridge-nf-call-ip6tables", "1\n")
	check("with both settings", have, pods, "")
}

// TestBridgeWarning warns once, and again if the bridges differ.
func TestBridgeWarning(t *testing.T) {
	var log bytes.Buffer
	f := &Frontend{state: newLab(t).state, have: [2]bool{true, false}}
	f.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	h := host{sys: t.TempDir(), proc: t.TempDir()}
	warned := f.warnBridges(h, "")
	put(t, h.sys+"/class/net/cni0/bridge/x", "")
	put(t, h.proc+"/net/route", routes4)
	for range 3 {
		warned = f.warnBridges(h, warned)
	}
	if n := strings.Count(log.String(), "bridges=cni0"); n != 1 {
		t.Errorf("%d warnings: %s", n, &log)
	}
}
