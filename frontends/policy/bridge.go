package policy

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/frontends/policy/localstate"
)

// bridgeSettings pass packets between two ports of a bridge to nftables, for IPv4 and IPv6.
var bridgeSettings = [2]string{"bridge-nf-call-iptables", "bridge-nf-call-ip6tables"}

type host struct {
	sys, proc string
	networks  func(name string) []netip.Prefix
}

func thisHost() host { return host{"/sys", "/proc", networks} }

func networks(name string) (out []netip.Prefix) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return nil
	}
	addrs, _ := i.Addrs()
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// unfilteredBridges returns the bridges that connect local pods and bypass nftables (rule 41), and
// the settings to change. It calls pods only if bridges exist and a setting is wrong.
func (h host) unfilteredBridges(have [2]bool, pods func() []netip.Addr) (bridges, settings []string) {
	// The only error is an invalid pattern.
	found, _ := filepath.Glob(h.sys + "/class/net/*/bridge")
	if len(found) == 0 {
		return nil, nil
	}
	for family, setting := range bridgeSettings {
		b, err := os.ReadFile(h.proc + "/sys/net/bridge/" + setting)
		if !have[family] || err == nil && strings.TrimSpace(string(b)) == "1" {
			continue
		}
		before, addrs := len(bridges), pods()
		for _, path := range found {
			name := filepath.Base(filepath.Dir(path))
			if slices.ContainsFunc(h.networks(name), func(p netip.Prefix) bool {
				return p.Addr().Is6() == (family == 1) && slices.ContainsFunc(addrs, p.Contains)
			}) {
				bridges = append(bridges, name)
			}
		}
		if len(bridges) > before {
			settings = append(settings, "net.bridge."+setting)
		}
	}
	slices.Sort(bridges)
	return slices.Compact(bridges), settings
}

// podAddresses has one address for each prefix too: a bridge may exist before its first pod.
func podAddresses(s localstate.State) []netip.Addr {
	var out []netip.Addr
	for _, p := range s.Pods {
		if p.Link.Name == "" || p.Link.Bridged {
			out = append(out, p.Addresses...)
		}
	}
	for _, prefix := range s.Node.PodCIDRs {
		out = append(out, prefix.Masked().Addr().Next())
	}
	return out
}

// warnBridges returns the present warning, and logs it unless it equals before.
func (f *Frontend) warnBridges(h host, before string) string {
	bridges, settings := h.unfilteredBridges(f.have, func() []netip.Addr { return podAddresses(f.state.State()) })
	now := strings.Join(bridges, ",") + " " + strings.Join(settings, ",")
	if len(bridges) > 0 && now != before {
		f.cfg.Logger.Warn("packets between two pods on one bridge are not filtered: load br_netfilter and set these to 1",
			"bridges", strings.Join(bridges, ","), "settings", strings.Join(settings, ","))
	}
	return now
}
