package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// healthy are files of a node with nothing wrong.
var healthy = map[string]string{
	"proc/sys/net/ipv4/ip_forward":                 "1",
	"proc/sys/net/ipv4/conf/all/forwarding":        "1",
	"proc/sys/net/ipv4/conf/eth0/forwarding":       "1",
	"proc/sys/net/ipv6/conf/all/forwarding":        "1",
	"proc/sys/net/ipv4/conf/all/rp_filter":         "0",
	"proc/sys/net/ipv4/conf/eth0/rp_filter":        "1",
	"proc/sys/net/ipv4/ip_local_port_range":        "32768\t60999",
	"proc/sys/net/ipv4/ip_local_reserved_ports":    "",
	"proc/sys/net/ipv4/neigh/default/gc_thresh3":   "1024",
	"proc/sys/net/bridge/bridge-nf-call-iptables":  "1",
	"proc/sys/net/bridge/bridge-nf-call-ip6tables": "1",
	"proc/sys/net/netfilter/nf_conntrack_max":      "262144",
	"proc/sys/net/netfilter/nf_conntrack_count":    "1000",
	"proc/sys/net/netfilter/nf_conntrack_buckets":  "65536",
	"proc/net/if_inet6":                            "fd000000000000000000000000000001 02 40 00 80     eth0",
	"proc/net/netstat":                             "TcpExt: SyncookiesSent IPReversePathFilter\nTcpExt: 3 0\nIpExt: InNoRoutes\nIpExt: 7",
	"proc/net/stat/nf_conntrack":                   "entries clashres insert_failed drop early_drop\n00000010 00000000 00000003 00000000 00000000\n00000010 00000000 00000000 00000000 00000000",
	"proc/net/stat/arp_cache":                      "entries table_fulls\n0000002a 00000000",
	"sys/class/net/cni0/brif/veth1/port_no":        "1",
	"sys/class/net/cni0/brif/veth2/port_no":        "2",
}

// rootOf writes files, over those of a healthy node.
func rootOf(t *testing.T, over map[string]string) *node {
	t.Helper()
	root := t.TempDir()
	for _, files := range []map[string]string{healthy, over} {
		for path, text := range files {
			path = filepath.Join(root, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return newNode(t.Context(), Config{Root: root, Now: time.Now, Socket: filepath.Join(root, "none")})
}

// hostChecks are those that read only files.
var hostChecks = []string{"forwarding", "rp-filter", "bridges", "ports", "conntrack", "neighbours", "clock"}

// examineHost runs them.
func examineHost(t *testing.T, n *node) []Finding {
	t.Helper()
	var out []Finding
	for _, c := range checks {
		for _, name := range hostChecks {
			if c.name == name {
				out = append(out, c.examine(t.Context(), n)...)
			}
		}
	}
	return out
}

// TestHostFaults seeds one fault after the other: each is found by its check alone, with its
// remedy. A healthy node has none.
func TestHostFaults(t *testing.T) {
	if found := examineHost(t, rootOf(t, nil)); len(found) > 0 {
		t.Fatalf("a healthy node: %+v", found)
	}
	for _, tc := range []struct {
		name     string
		files    map[string]string
		check    string
		severity Severity
		found    string
		remedy   string
	}{
		{"no forwarding", map[string]string{"proc/sys/net/ipv4/ip_forward": "0"}, "forwarding", Error, "net.ipv4.ip_forward is 0", "sysctl -w net.ipv4.ip_forward=1"},
		{"no IPv6 forwarding", map[string]string{"proc/sys/net/ipv6/conf/all/forwarding": "0"}, "forwarding", Error, "net.ipv6.conf.all.forwarding is 0", "sysctl -w net.ipv6.conf.all.forwarding=1"},
		{"a device does not forward", map[string]string{"proc/sys/net/ipv4/conf/eth0/forwarding": "0"}, "forwarding", Warning, "for eth0,", "Set it to 1"},
		{"strict sources", map[string]string{"proc/net/netstat": "TcpExt: SyncookiesSent IPReversePathFilter\nTcpExt: 3 12"}, "rp-filter", Error, "on eth0) has dropped 12 packets", "rp_filter=2"},
		{"bridge", map[string]string{"proc/sys/net/bridge/bridge-nf-call-iptables": "0"}, "bridges", Warning, "bridge cni0 has several ports, and net.bridge.bridge-nf-call-iptables", "modprobe br_netfilter"},
		{"client ports are NodePorts", map[string]string{"proc/sys/net/ipv4/ip_local_port_range": "1024 31000"}, "ports", Warning, "ports from 30000 to 31000", "ip_local_reserved_ports=30000-32767"},
		{"conntrack full", map[string]string{"proc/sys/net/netfilter/nf_conntrack_count": "262144"}, "conntrack", Error, "is full: 262144 of 262144", "nf_conntrack_max=524288"},
		{"conntrack nearly full", map[string]string{"proc/sys/net/netfilter/nf_conntrack_count": "220000"}, "conntrack", Warning, "nearly full: 220000 of 262144", "nf_conntrack_max=524288"},
		{"conntrack was full", map[string]string{"proc/net/stat/nf_conntrack": "drop early_drop\n0000000a 00000001\n00000001 00000000"}, "conntrack", Warning, "dropped 11 packets, and forgot 1", "nf_conntrack_max=524288"},
		{"few buckets", map[string]string{"proc/sys/net/netfilter/nf_conntrack_buckets": "1024"}, "conntrack", Warning, "1024 buckets for 262144", "hashsize"},
		{"neighbours full", map[string]string{"proc/net/stat/arp_cache": "entries table_fulls\n0000002a 00000003"}, "neighbours", Error, "full 3 times (ipv4: at most 1024", "gc_thresh3"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			found := examineHost(t, rootOf(t, tc.files))
			if len(found) != 1 {
				t.Fatalf("%d findings: %+v", len(found), found)
			}
			f := found[0]
			if f.Check != tc.check || f.Severity != tc.severity || !strings.Contains(f.Found, tc.found) || !strings.Contains(f.Remedy, tc.remedy) || f.Meaning == "" {
				t.Errorf("%+v: want %s of %s with %q and %q", f, tc.severity, tc.check, tc.found, tc.remedy)
			}
		})
	}
}

// TestHostHarmless: what only looks like a fault is not found.
func TestHostHarmless(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"no IPv6 address":     {"proc/sys/net/ipv6/conf/all/forwarding": "0", "proc/net/if_inet6": "fe800000000000000000000000000001 02 40 20 80     eth0"},
		"loose sources":       {"proc/net/netstat": "TcpExt: IPReversePathFilter\nTcpExt: 9", "proc/sys/net/ipv4/conf/all/rp_filter": "2"},
		"a bridge of one pod": {"proc/sys/net/bridge/bridge-nf-call-iptables": "0", "sys/class/net/cni0/brif/veth2/port_no": "2"},
		"ports are reserved":  {"proc/sys/net/ipv4/ip_local_port_range": "1024 60999", "proc/sys/net/ipv4/ip_local_reserved_ports": "8080,30000-32767"},
	} {
		t.Run(name, func(t *testing.T) {
			n := rootOf(t, files)
			if name == "a bridge of one pod" {
				if err := os.RemoveAll(filepath.Join(n.Root, "sys/class/net/cni0/brif/veth2")); err != nil {
					t.Fatal(err)
				}
			}
			if found := examineHost(t, n); len(found) > 0 {
				t.Errorf("%+v", found)
			}
		})
	}
}

// TestHostUnreadable: a file that is not as expected is a finding, and not a pass.
func TestHostUnreadable(t *testing.T) {
	for path, text := range map[string]string{
		"proc/sys/net/ipv4/ip_forward":                "many",
		"proc/net/stat/nf_conntrack":                  "drop\nxyz",
		"proc/net/stat/arp_cache":                     "entries\n1 2",
		"proc/net/netstat":                            "TcpExt: IPReversePathFilter\nTcpExt: x",
		"proc/sys/net/netfilter/nf_conntrack_max":     "x",
		"proc/sys/net/bridge/bridge-nf-call-iptables": "x",
	} {
		found := examineHost(t, rootOf(t, map[string]string{path: text}))
		if len(found) != 1 || found[0].Severity != Unknown {
			t.Errorf("%s: %+v", path, found)
		}
	}
}
