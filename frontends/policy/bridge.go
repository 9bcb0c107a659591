package policy

import (
	"os"
	"path/filepath"
	"strings"
)

// unfilteredBridges returns the bridges of the network namespace whose packets from port to
// port pass by nftables (rule 41), and the settings that would change it. sys and proc are
// the mount points of sysfs and procfs.
func unfilteredBridges(sys, proc string, have [2]bool) (bridges, settings []string) {
	// The pattern is valid, which is the only error.
	found, _ := filepath.Glob(sys + "/class/net/*/bridge")
	for _, path := range found {
		bridges = append(bridges, filepath.Base(filepath.Dir(path)))
	}
	for family, name := range []string{"bridge-nf-call-iptables", "bridge-nf-call-ip6tables"} {
		b, err := os.ReadFile(proc + "/sys/net/bridge/" + name)
		if have[family] && (err != nil || strings.TrimSpace(string(b)) != "1") {
			settings = append(settings, "net.bridge."+name)
		}
	}
	if len(bridges) == 0 || len(settings) == 0 {
		return nil, nil
	}
	return bridges, settings
}

// warnBridges logs a warning if a bridge may connect pods past the rules.
func (c *Config) warnBridges(have [2]bool) {
	if bridges, settings := unfilteredBridges("/sys", "/proc", have); len(bridges) > 0 {
		c.Logger.Warn("packets between two ports of a bridge are not filtered: if pods are connected to one, load br_netfilter and set these to 1",
			"bridges", strings.Join(bridges, ","), "settings", strings.Join(settings, ","))
	}
}
