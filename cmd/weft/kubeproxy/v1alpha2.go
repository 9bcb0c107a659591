package kubeproxy

import (
	"cmp"
	"strings"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-proxy/config/v1alpha1"
)

const apiVersion2 = v1alpha1.GroupName + "/v1alpha2"

// configuration2 is v1alpha2: v1alpha1 without the fields in replacements, and with its own. Kubernetes 1.37
// did not release it: it follows KEP-784 and the internal types of kube-proxy 1.37.
type configuration2 struct {
	v1alpha1.KubeProxyConfiguration

	Linux struct {
		Conntrack     v1alpha1.KubeProxyConntrackConfiguration `json:"conntrack"`
		MasqueradeAll bool                                     `json:"masqueradeAll"`
		OOMScoreAdj   *int32                                   `json:"oomScoreAdj"`
	} `json:"linux"`
	Windows struct {
		RunAsService bool `json:"runAsService"`
	} `json:"windows"`
	DetectLocal struct {
		v1alpha1.DetectLocalConfiguration
		ClusterCIDRs []string `json:"clusterCIDRs"`
	} `json:"detectLocal"`
	NodeIPOverride []string `json:"nodeIPOverride"`
	IPFamilyPolicy string   `json:"ipFamilyPolicy"`
	// by default true
	BindAddressHardFail *bool `json:"bindAddressHardFail"`
	ConfigHardFail      *bool `json:"configHardFail"`
	// of every mode
	SyncPeriod    metav1.Duration `json:"syncPeriod"`
	MinSyncPeriod metav1.Duration `json:"minSyncPeriod"`
}

func replacements() []struct{ path, by string } {
	return []struct{ path, by string }{
		{"bindAddress", "nodeIPOverride"},
		{"clusterCIDR", "detectLocal.clusterCIDRs"},
		{"conntrack", "linux.conntrack"},
		{"iptables.masqueradeAll", "linux.masqueradeAll"},
		{"iptables.minSyncPeriod", "minSyncPeriod"},
		{"iptables.syncPeriod", "syncPeriod"},
		{"ipvs.minSyncPeriod", "minSyncPeriod"},
		{"ipvs.syncPeriod", "syncPeriod"},
		{"nftables.masqueradeAll", "linux.masqueradeAll"},
		{"nftables.minSyncPeriod", "minSyncPeriod"},
		{"nftables.syncPeriod", "syncPeriod"},
		{"oomScoreAdj", "linux.oomScoreAdj"},
		{"portRange", "nothing"},
		{"windowsRunAsService", "windows.runAsService"},
	}
}

func (d *document) decode2(root *yaml.Node) {
	var c configuration2
	d.Decode(root, &c)
	for _, r := range replacements() {
		if line, ok := d.Lines[r.path]; ok {
			d.Add(line, r.path, "v1alpha2 has %s in its place", r.by)
		}
	}
	d.second = true
	d.config = c.KubeProxyConfiguration
	to := &d.config
	to.Conntrack, to.OOMScoreAdj, to.WindowsRunAsService = c.Linux.Conntrack, c.Linux.OOMScoreAdj, c.Windows.RunAsService
	to.NFTables.MasqueradeAll, to.NFTables.SyncPeriod, to.NFTables.MinSyncPeriod = c.Linux.MasqueradeAll, c.SyncPeriod, c.MinSyncPeriod
	to.DetectLocal, to.ClusterCIDR = c.DetectLocal.DetectLocalConfiguration, strings.Join(c.DetectLocal.ClusterCIDRs, ",")
	to.BindAddress = strings.Join(c.NodeIPOverride, ",")
	to.BindAddressHardFail = *cmp.Or(c.BindAddressHardFail, new(true))

	if c.IPFamilyPolicy != "" && c.IPFamilyPolicy != "PreferDualStack" {
		d.warnings = append(d.warnings, "ipFamilyPolicy: no effect: weft serves the families of the node")
	}
	if c.ConfigHardFail != nil && !*c.ConfigHardFail {
		d.warnings = append(d.warnings, "configHardFail: no effect: weft does not start with an error in the file")
	}
}

// path returns the name in the file of a path in v1alpha1.
func (d *document) path(path string) string {
	for _, r := range replacements() {
		if rest, ok := strings.CutPrefix(path, r.path); ok && d.second && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return r.by + rest
		}
	}
	return path
}
