package policy

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-proxy/weft/frontends/policy/localstate"
)

// bridgeSettings make the packets between two ports of a bridge pass nftables, one for each
// family, IPv4 first.
var bridgeSettings = [2]string{"bridge-nf-call-iptables", "bridge-nf-call-ip6tables"}

// host has the mount points of sysfs and procfs.
type host struct{ sys, proc string }

// unfilteredBridges returns the bridges that connect pods of this node and whose packets
// from port to port do not pass nftables (rule 41), and the settings that would change it.
// pods returns addresses of pods. It is called only if there are bridges and a setting is
// wrong.
func (h host) unfilteredBridges(have [2]bool, pods func() []netip.Addr) (bridges, settings []string) {
	// The pattern is valid, which is the only error.
	found, _ := filepath.Glob(h.sys + "/class/net/*/bridge")
	if len(found) == 0 {
		return nil, nil
	}
	for family, setting := range bridgeSettings {
		b, err := os.ReadFile(h.proc + "/sys/net/bridge/" + setting)
		if !have[family] || err == nil && strings.TrimSpace(string(b)) == "1" {
			continue
		}
		routes, unfiltered := h.routes(family == 1), false
		for _, addr := range pods() {
			bridge := deviceOf(routes, addr)
			if bridge == "" || !slices.Contains(found, filepath.Join(h.sys, "class/net", bridge, "bridge")) {
				continue
			}
			unfiltered = true
			if !slices.Contains(bridges, bridge) {
				bridges = append(bridges, bridge)
			}
		}
		if unfiltered {
			settings = append(settings, "net.bridge."+setting)
		}
	}
	slices.Sort(bridges)
	return bridges, settings
}

// route is a route of the host.
type route struct {
	to netip.Prefix
	// device is empty if the destination is behind a gateway.
	device string
}

// routes returns the routes of a family. One that cannot be read is left out: the routes
// serve only a warning.
func (h host) routes(six bool) []route {
	path, parse := h.proc+"/net/route", parseRoute4
	if six {
		path, parse = h.proc+"/net/ipv6_route", parseRoute6
	}
	f, err := os.Open(path) //nolint:gosec // a file of the kernel
	if err != nil {
		return nil
	}
	defer f.Close()
	var out []route
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if r, ok := parse(strings.Fields(lines.Text())); ok {
			out = append(out, r)
		}
	}
	return out
}

// parseRoute4 parses a line of /proc/net/route: the numbers are in the order of this
// machine's bytes.
func parseRoute4(words []string) (route, bool) {
	if len(words) < 8 {
		return route{}, false
	}
	to, err1 := strconv.ParseUint(words[1], 16, 32)
	mask, err2 := strconv.ParseUint(words[7], 16, 32)
	if err1 != nil || err2 != nil {
		return route{}, false
	}
	var addr, bits [4]byte
	binary.NativeEndian.PutUint32(addr[:], uint32(to))
	binary.NativeEndian.PutUint32(bits[:], uint32(mask))
	length := 0
	for m := binary.BigEndian.Uint32(bits[:]); m&(1<<31) != 0; m <<= 1 {
		length++
	}
	r := route{to: netip.PrefixFrom(netip.AddrFrom4(addr), length), device: words[0]}
	if words[2] != "00000000" {
		r.device = ""
	}
	return r, true
}

// parseRoute6 parses a line of /proc/net/ipv6_route.
func parseRoute6(words []string) (route, bool) {
	if len(words) < 10 {
		return route{}, false
	}
	to, err1 := hex.DecodeString(words[0])
	length, err2 := strconv.ParseUint(words[1], 16, 8)
	addr, ok := netip.AddrFromSlice(to)
	if err1 != nil || err2 != nil || !ok {
		return route{}, false
	}
	r := route{to: netip.PrefixFrom(addr, int(length)), device: words[9]}
	if strings.Trim(words[4], "0") != "" {
		r.device = ""
	}
	return r, r.to.IsValid()
}

// deviceOf returns the device to which an address is connected, empty if it is not.
func deviceOf(routes []route, addr netip.Addr) string {
	best := route{}
	for _, r := range routes {
		if r.to.Contains(addr) && (!best.to.IsValid() || r.to.Bits() > best.to.Bits()) {
			best = r
		}
	}
	return best.device
}

// podAddresses returns the addresses of the pods of this node, and one for each prefix of
// its pods: a bridge may exist before its first pod.
func podAddresses(s localstate.State) []netip.Addr {
	var out []netip.Addr
	for _, p := range s.Pods {
		out = append(out, p.Addresses...)
	}
	for _, prefix := range s.Node.PodCIDRs {
		out = append(out, prefix.Masked().Addr().Next())
	}
	return out
}

// warnBridges logs a warning if a bridge connects pods past the rules, unless the warning
// is the one of before. It returns the text of the present one.
func (f *Frontend) warnBridges(h host, before string) string {
	bridges, settings := h.unfilteredBridges(f.have, func() []netip.Addr { return podAddresses(f.state.State(nil, false)) })
	now := strings.Join(bridges, ",") + " " + strings.Join(settings, ",")
	if len(bridges) > 0 && now != before {
		f.cfg.Logger.Warn("packets between two pods on one bridge are not filtered: load br_netfilter and set these to 1",
			"bridges", strings.Join(bridges, ","), "settings", strings.Join(settings, ","))
	}
	return now
}
