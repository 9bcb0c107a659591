package publish

import (
	"os"
	"strings"
)

// Families returns the IP families of the network namespace, IPv4 first, for which a frontend
// publishes rules. There is no IPv6 if the kernel is built without it, or if it is disabled.
// proc is the mount point of procfs.
func Families(proc string) [2]bool {
	out := [2]bool{true, true}
	if _, err := os.Stat(proc + "/net/if_inet6"); err != nil {
		out[1] = false
	}
	if b, err := os.ReadFile(proc + "/sys/net/ipv6/conf/all/disable_ipv6"); err == nil && strings.TrimSpace(string(b)) == "1" {
		out[1] = false
	}
	return out
}
