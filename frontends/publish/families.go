package publish

import (
	"os"
	"strings"
)

// Families reports for which IP families, IPv4 first, the network namespace needs rules. proc is the procfs
// mount point.
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
