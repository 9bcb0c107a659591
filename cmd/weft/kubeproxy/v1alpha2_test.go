package kubeproxy

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func parse2(text string) (*Settings, error) {
	return Parse("f", []byte("apiVersion: kubeproxy.config.k8s.io/v1alpha2\nkind: KubeProxyConfiguration\n"+text))
}

// TestVersion2MeansTheSame compares files of v1alpha2 with files of v1alpha1, whose bindAddressHardFail is
// true, because this is the default of v1alpha2.
//
// Behaviour: 146, 147, 148, 149, 150.
func TestVersion2MeansTheSame(t *testing.T) {
	for second, first := range map[string]string{
		"": "",
		`mode: nftables
hostnameOverride: a
nodeIPOverride: ["192.0.2.1"]
syncPeriod: 7s
minSyncPeriod: 1s
nftables: {masqueradeBit: 3}
nodePortAddresses: [192.0.2.0/24]
linux:
  masqueradeAll: true
  oomScoreAdj: -5
  conntrack: {maxPerCore: 1, udpTimeout: 9s}
windows: {runAsService: true}
detectLocal: {clusterCIDRs: [10.0.0.0/8, "fd00::/8"]}
featureGates: {AllowServiceExternalIPs: false}
`: `mode: nftables
hostnameOverride: a
bindAddress: 192.0.2.1
nftables: {masqueradeBit: 3, masqueradeAll: true, syncPeriod: 7s, minSyncPeriod: 1s}
nodePortAddresses: [192.0.2.0/24]
oomScoreAdj: -5
conntrack: {maxPerCore: 1, udpTimeout: 9s}
windowsRunAsService: true
clusterCIDR: 10.0.0.0/8,fd00::/8
featureGates: {AllowServiceExternalIPs: false}
`,
		"mode: iptables\niptables: {masqueradeBit: 5}\nlinux: {masqueradeAll: true}\nsyncPeriod: 7s\ndetectLocalMode: BridgeInterface\ndetectLocal: {bridgeInterface: cni0}\n": "mode: iptables\niptables: {masqueradeBit: 5}\nnftables: {masqueradeAll: true, syncPeriod: 7s}\ndetectLocalMode: BridgeInterface\ndetectLocal: {bridgeInterface: cni0}\n",
	} {
		got, err := parse2(second)
		if err != nil {
			t.Errorf("%s: %v", second, err)
			continue
		}
		want, err := Parse("f", []byte(header+"bindAddressHardFail: true\n"+first))
		must(t, err)
		for i, w := range want.Warnings {
			want.Warnings[i] = strings.Replace(w, "windowsRunAsService", "windows.runAsService", 1)
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Settings{}), cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" {
			t.Errorf("%s (-v1alpha1 +v1alpha2):\n%s", second, diff)
		}
	}
	s, err := parse2("nodeIPOverride: [\"2001:db8::1\", 192.0.2.1]\nbindAddressHardFail: false\n")
	if err != nil || s.NodeAddresses[0].String() != "192.0.2.1" || s.NodeAddresses[1].String() != "2001:db8::1" || s.MetricsAddress != "[::1]:10249" || s.Configuration.BindAddressHardFail {
		t.Errorf("two addresses: %+v, error %v", s, err)
	}
	s, err = parse2("mode: nftables\nipFamilyPolicy: SingleStack\nconfigHardFail: false\n")
	want := []string{"ipFamilyPolicy: no effect: weft serves the families of the node", "configHardFail: no effect: weft does not start with an error in the file"}
	if err != nil || !slices.Equal(s.Warnings, want) {
		t.Errorf("warnings %q, error %v", s.Warnings, err)
	}
}

// TestVersion2Errors refuses fields that v1alpha2 does not have, with what takes their place, and names
// values by their path in the file.
//
// Behaviour: 146, 147, 148, 149, 150.
func TestVersion2Errors(t *testing.T) {
	for text, want := range map[string]string{
		"bindAddress: 192.0.2.1\n":                  "f:3: bindAddress: v1alpha2 has nodeIPOverride in its place",
		"portRange: 1-2\n":                          "f:3: portRange: v1alpha2 has nothing in its place",
		"nftables:\n  minSyncPeriod: 1s\n":          "f:4: nftables.minSyncPeriod: v1alpha2 has minSyncPeriod in its place",
		"conntrack:\n  min: 1\n":                    "f:3: conntrack: v1alpha2 has linux.conntrack in its place",
		"linux:\n  conntrak: {}\n":                  `f:4: linux: unknown field "conntrak": want conntrack, masqueradeAll, oomScoreAdj`,
		"linux: {oomScoreAdj: 1001}\n":              "f:3: linux.oomScoreAdj: got 1001: want -1000 to 1000",
		"linux:\n  conntrack:\n    min: -1\n":       "f:5: linux.conntrack.min: got -1: want at least 0",
		"syncPeriod: 1s\nminSyncPeriod: 2s\n":       "f:4: minSyncPeriod: got 2s: want at most the syncPeriod, 1s",
		"detectLocal: {clusterCIDRs: 10.0.0.0/8}\n": `f:3: detectLocal.clusterCIDRs: got "10.0.0.0/8": want a list`,
		"detectLocal: {clusterCIDRs: [pods]}\n":     `f:3: detectLocal.clusterCIDRs: got "pods": want an address and a prefix length, such as 10.244.0.0/16`,
		"nodeIPOverride: [192.0.2.1, 192.0.2.2]\n":  `f:3: nodeIPOverride: got "192.0.2.1,192.0.2.2": want one, or one of each family`,
		"nodeIPOverride: [here]\n":                  `f:3: nodeIPOverride: got "here": want an address`,
	} {
		if _, err := parse2(text); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
	if _, err := parse2("---\nmode: nftables\n"); err == nil || !strings.Contains(err.Error(), "there is a second document") {
		t.Errorf("two documents: error %v", err)
	}
	for _, field := range []string{"linux: {}", "syncPeriod: 1s", "nodeIPOverride: []", "windows: {}"} {
		if _, err := Parse("f", []byte(header+field+"\n")); err == nil || !strings.Contains(err.Error(), "unknown field") {
			t.Errorf("v1alpha1 with %s: error %v", field, err)
		}
	}
	for _, r := range replacements() {
		if !slices.ContainsFunc(fields(), func(f field) bool { return f.path == r.path || strings.HasPrefix(f.path, r.path+".") }) {
			t.Errorf("%s is not a field of v1alpha1", r.path)
		}
	}
}
