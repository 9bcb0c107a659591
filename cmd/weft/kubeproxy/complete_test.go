package kubeproxy

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-proxy/weft/aggregator/access"
	"github.com/weft-proxy/weft/cmd/weft/cli"
)

// TestFileErrors: everything that is wrong in a file is reported at once, with its
// line. The header has two lines.
//
// Behaviour: 90, 146, 147, 148, 149, 150.
func TestFileErrors(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"unknown": {"clusterCidr: 10.0.0.0/8\nconntrack:\n  maxPerCor: 1\n", `3: unknown field "clusterCidr": did you mean clusterCIDR?
5: conntrack: unknown field "maxPerCor": want maxPerCore, min, tcpBeLiberal, tcpCloseWaitTimeout, tcpEstablishedTimeout, udpStreamTimeout, udpTimeout`},
		"repeated": {"bindAddress: 192.0.2.1\nmode: nftables\nbindAddress: 192.0.2.2\n",
			`5: bindAddress: duplicate field, first set in line 3: remove one`},
		"types": {"oomScoreAdj: low\nbindAddressHardFail: 1\nenableProfiling: \"yes\"\nnodePortAddresses: primary\nconntrack: []\nclusterCIDR: 10\nclientConnection: {qps: fast, burst: 99999999999}\nnftables: {syncPeriod: 30}\nipvs: {excludeCIDRs: [1]}\n", `3: oomScoreAdj: got "low": want a whole number from -2147483648 to 2147483647
4: bindAddressHardFail: got "1": want true or false
5: enableProfiling: got "yes": want true or false
6: nodePortAddresses: got "primary": want a list
7: conntrack: got a list: want a mapping of fields
8: clusterCIDR: got "10": want a text in quotes
9: clientConnection.qps: got "fast": want a number
9: clientConnection.burst: got "99999999999": want a whole number from -2147483648 to 2147483647
10: nftables.syncPeriod: got "30": want a value such as "30s" for a time, "64Ki" for a size
11: ipvs.excludeCIDRs[0]: got "1": want a text in quotes`},
		"alias":   {"clusterCIDR: &a 10.0.0.0/8\nbindAddress: *a\n", `4: bindAddress: aliases are not supported: write the value out`},
		"second":  {"---\nmode: nftables\n", `3: there is a second document: put everything into one`},
		"no YAML": {"mode: [\n", `3: did not find expected node content`},
		"values": {`mode: userspace
bindAddress: localhost
healthzBindAddress: 1.2.3.4:0
metricsBindAddress: here
oomScoreAdj: -1001
conntrack:
  maxPerCore: -1
  min: -1
  udpTimeout: -1s
nftables:
  masqueradeBit: 32
  syncPeriod: 1s
  minSyncPeriod: 2s
detectLocalMode: Guess
configSyncPeriod: -1s
clientConnection: {burst: -1}
nodePortAddresses:
- 192.0.2.0/24
- primary
- 10.0.0.1
- primary
showHiddenMetricsForVersion: next
logging: {format: xml}
featureGates:
  Nonsense: true
`, `3: mode: got "userspace": want nftables (or iptables, ipvs or nothing, which mean the same in weft)
4: bindAddress: got "localhost": want an address
5: healthzBindAddress: got "1.2.3.4:0": want an address, or an address and a port such as 0.0.0.0:10256
6: metricsBindAddress: got "here": want an address, or an address and a port such as 0.0.0.0:10256
7: oomScoreAdj: got -1001: want -1000 to 1000
9: conntrack.maxPerCore: got -1: want at least 0
10: conntrack.min: got -1: want at least 0
11: conntrack.udpTimeout: got -1s: want at least 0
13: nftables.masqueradeBit: got 32: want 0 to 31
15: nftables.minSyncPeriod: got 2s: want at most the syncPeriod, 1s
16: detectLocalMode: got "Guess": want ClusterCIDR, NodeCIDR, BridgeInterface, InterfaceNamePrefix
17: configSyncPeriod: got -1s: want more than 0
18: clientConnection.burst: got -1: want at least 0
22: nodePortAddresses[2]: got "10.0.0.1": want an address and a prefix length, such as 10.244.0.0/16, or primary, localhost or all
23: nodePortAddresses[3]: got "primary": want this word once
24: showHiddenMetricsForVersion: got "next": want a version such as 1.35
25: logging.format: got "xml": want text or json`},
		"one family twice": {"clusterCIDR: 10.0.0.0/8,10.1.0.0/16\n", `3: clusterCIDR: got "10.0.0.0/8,10.1.0.0/16": want one, or one of each family`},
		"three":            {"clusterCIDR: 10.0.0.0/8,fd00::/8,fd01::/16\n", `3: clusterCIDR: got "10.0.0.0/8,fd00::/8,fd01::/16": want one, or one of each family`},
		"no CIDR":          {"clusterCIDR: pods\n", `3: clusterCIDR: got "pods": want an address and a prefix length, such as 10.244.0.0/16`},
		"no bridge":        {"detectLocalMode: BridgeInterface\n", `0: detectLocal.bridgeInterface: got "": want the name of an interface, for BridgeInterface`},
		"no prefix":        {"detectLocalMode: InterfaceNamePrefix\ndetectLocal: {interfaceNamePrefix: 'a\" b'}\n", `4: detectLocal.interfaceNamePrefix: got "a\" b": want a prefix of the names of interfaces, for InterfaceNamePrefix`},
	} {
		t.Run(name, func(t *testing.T) {
			o, flags := command(t)
			file := write(t, tt.text)
			_, err := o.Complete(flags, file)
			var broken *access.FileError
			if !errors.As(err, &broken) {
				t.Fatalf("error %v: want an *access.FileError", err)
			}
			want := strings.Split(tt.want, "\n")
			for i, line := range want {
				if text, whole := strings.CutPrefix(line, "0: "); whole {
					want[i] = file + ": " + text
				} else {
					want[i] = file + ":" + line
				}
			}
			if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestOldYAML: what kube-proxy takes for true, weft does.
func TestOldYAML(t *testing.T) {
	s := fromText(t, "bindAddressHardFail: yes\nenableProfiling: on\nconntrack: {tcpBeLiberal: off}\n")
	if c := s.Configuration; !c.BindAddressHardFail || !c.EnableProfiling || c.Conntrack.TCPBeLiberal {
		t.Errorf("hard fail %v, profiling %v, liberal %v", c.BindAddressHardFail, c.EnableProfiling, c.Conntrack.TCPBeLiberal)
	}
}

// TestHead: a file says what it is; so does the one that it is taken for.
func TestHead(t *testing.T) {
	for text, kind := range map[string]string{
		"kind: KubeProxyConfiguration\n": Kind, "{\"kind\": \"KubeProxyConfiguration\"}": Kind, "kind: Configuration\n": "Configuration",
		"kind: KubeProxyConfiguration\nkind: KubeProxyConfiguration\n": Kind, "a: [": "", "": "", "[1]": "",
	} {
		file := filepath.Join(t.TempDir(), "f")
		must(t, os.WriteFile(file, []byte(text), 0o600))
		if got := KindOf(file); got != kind {
			t.Errorf("kind of %q is %q: want %q", text, got, kind)
		}
		o, flags := command(t)
		if _, err := o.Complete(flags, file); err == nil {
			t.Errorf("%q passes for a configuration", text)
		}
	}
	if KindOf("/nowhere") != "" {
		t.Error("what is not there has a kind")
	}
	o, flags := command(t)
	if _, err := o.Complete(flags, "/nowhere"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v: want that there is no file", err)
	}
}

// TestFlagErrors names the flag that was given.
//
// Behaviour: 90, 148, 149.
func TestFlagErrors(t *testing.T) {
	for arg, want := range map[string]string{
		"--masquerade-bit=32":                      `--masquerade-bit 32: want 0 to 31`,
		"--iptables-masquerade-bit=-1":             `--iptables-masquerade-bit -1: want 0 to 31`,
		"--min-sync-period=31s":                    `--min-sync-period 31s: want at most the syncPeriod, 30s`,
		"--cluster-cidr=10.0.0.1":                  `--cluster-cidr "10.0.0.1": want an address and a prefix length, such as 10.244.0.0/16`,
		"--nodeport-addresses=all,all":             `--nodeport-addresses "all": want this word once`,
		"--nodeport-addresses=::1":                 `--nodeport-addresses "::1": want an address and a prefix length, such as 10.244.0.0/16, or primary, localhost or all`,
		"--proxy-mode=kernelspace":                 `--proxy-mode "kernelspace": want nftables (or iptables, ipvs or nothing, which mean the same in weft)`,
		"--detect-local-mode=BridgeInterface":      `--pod-bridge-interface "": want the name of an interface, for BridgeInterface`,
		"--hostname-override=  ":                   `--hostname-override: want the name of this node, or nothing for the host's name`,
		"--cleanup":                                `--cleanup: use the verb: weft cleanup --kube-proxy removes the rules of kube-proxy`,
		"--conntrack-tcp-timeout-established=-10s": `--conntrack-tcp-timeout-established -10s: want at least 0`,
		"--bind-address=here":                      `--bind-address "here": want an address`,
	} {
		o, flags := command(t, arg)
		_, err := o.Complete(flags, "")
		if !errors.As(err, new(*cli.UsageError)) || err.Error() != want {
			t.Errorf("%s: error %q: want %q", arg, err, want)
		}
	}
	_, flags := command(t)
	for _, text := range []string{"A", "A=yes", "=", "A=true=false"} {
		if err := flags.Set("feature-gates", text); err == nil {
			t.Errorf("--feature-gates %q passes", text)
		}
	}
}

// TestBesideFile: a file stands in place of the flags, as with kube-proxy, and who
// gave one hears of it; the node's name, the API server and the log stay the flags'.
//
// Behaviour: 147, 150.
func TestBesideFile(t *testing.T) {
	s := fromText(t, "mode: nftables\nclusterCIDR: 10.1.0.0/16\nhostnameOverride: file\nlogging: {verbosity: 1}\n",
		"--cluster-cidr=10.2.0.0/16", "--masquerade-all", "--metrics-bind-address=127.0.0.1:1", "--min-sync-period=5s",
		"--hostname-override=Flag", "--master=https://192.0.2.1", "-v=5", "--logging-format=json")
	if got := texts(s.Detect.CIDRs); got != "[10.1.0.0/16]" || s.Configuration.NFTables.MasqueradeAll || s.MetricsAddress != "127.0.0.1:10249" {
		t.Errorf("flags count beside a file: %s, %v, %s", got, s.Configuration.NFTables.MasqueradeAll, s.MetricsAddress)
	}
	if s.NodeName != "flag" || s.Server != "https://192.0.2.1" || s.LogLevel != level(5) || s.LogFormat != "json" {
		t.Errorf("node %q, server %q, log %v %s: want what the flags say", s.NodeName, s.Server, s.LogLevel, s.LogFormat)
	}
	want := "--metrics-bind-address, --masquerade-all, --min-sync-period, --cluster-cidr: ignored, because " + s.File + " has these settings"
	if !slices.Equal(s.Warnings, []string{want}) {
		t.Errorf("warnings %q: want %q", s.Warnings, want)
	}
}

// TestDeprecatedPorts: a port of 0 turns a server off, another one is for an address
// without one.
func TestDeprecatedPorts(t *testing.T) {
	for _, tt := range []struct {
		args             []string
		metrics, healthz string
	}{
		{[]string{"--healthz-port=0", "--metrics-port=7"}, "127.0.0.1:7", ""},
		{[]string{"--healthz-bind-address=::1", "--metrics-bind-address="}, "", "[::1]:10256"},
		{[]string{"--healthz-bind-address=127.0.0.1:5", "--healthz-port=6"}, "127.0.0.1:10249", "127.0.0.1:5"},
	} {
		if s := fromArgs(t, tt.args...); s.MetricsAddress != tt.metrics || s.HealthzAddress != tt.healthz {
			t.Errorf("%v: metrics on %q, healthz on %q: want %q, %q", tt.args, s.MetricsAddress, s.HealthzAddress, tt.metrics, tt.healthz)
		}
	}
	if s := fromText(t, "bindAddress: '2001:db8::7'\nmetricsBindAddress: 192.0.2.1\n"); s.HealthzAddress != "[::]:10256" || s.MetricsAddress != "192.0.2.1:10249" {
		t.Errorf("with an IPv6 address healthz is on %q, metrics on %q", s.HealthzAddress, s.MetricsAddress)
	}
}

// TestMode: kube-proxy's modes are taken for nftables, with a warning; what their
// users have to know of NodePorts is said too.
//
// Behaviour: 19, 146.
func TestMode(t *testing.T) {
	for _, mode := range []string{"iptables", "ipvs"} {
		for name, s := range map[string]*Settings{"flag": fromArgs(t, "--proxy-mode="+mode), "file": fromText(t, "mode: "+mode+"\n")} {
			if len(s.Warnings) != 2 || s.Warnings[0] != "mode "+mode+": weft always uses nftables" || !strings.Contains(s.Warnings[1], "nodePortAddresses") {
				t.Errorf("%s %s: warnings %q", name, mode, s.Warnings)
			}
			if s.Configuration.Mode != ModeNFTables {
				t.Errorf("%s %s: mode in force %q", name, mode, s.Configuration.Mode)
			}
		}
	}
	if w := fromArgs(t, "--proxy-mode=nftables").Warnings; len(w) > 0 {
		t.Errorf("warnings about nftables: %q", w)
	}
	if w := fromText(t, "mode: iptables\nnodePortAddresses: [0.0.0.0/0]\n").Warnings; len(w) != 1 {
		t.Errorf("warnings %q: want one", w)
	}
}

// TestHostGiven tells who says nothing of the machine.
//
// Behaviour: 149, 152.
func TestHostGiven(t *testing.T) {
	for name, tt := range map[string]struct {
		s         *Settings
		host, oom bool
	}{
		"nothing":     {fromArgs(t), false, false},
		"max":         {fromArgs(t, "--conntrack-max-per-core=1"), true, false},
		"oom":         {fromArgs(t, "--oom-score-adj=1"), true, true},
		"rule flags":  {fromArgs(t, "--masquerade-all"), false, false},
		"file":        {fromText(t, "mode: nftables\n"), true, false},
		"file choose": {fromText(t, "conntrack: {min: 1}\noomScoreAdj: -1\n"), true, true},
	} {
		if tt.s.HostGiven != tt.host || tt.s.OOMGiven != tt.oom {
			t.Errorf("%s: host %v, oom %v", name, tt.s.HostGiven, tt.s.OOMGiven)
		}
	}
	if got := fromArgs(t, "--conntrack-max-per-core=0").Conntrack.Max; got != 0 {
		t.Errorf("maxPerCore 0 asks for a limit of %d", got)
	}
}
