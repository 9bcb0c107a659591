package kubeproxy

import (
	"cmp"
	"net/netip"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/kube-proxy/config/v1alpha1"

	"github.com/weft-proxy/weft/frontends/services"
	"github.com/weft-proxy/weft/frontends/source/network"
)

// Modes, and ways to detect local traffic.
const (
	ModeIPTables = "iptables"
	ModeIPVS     = "ipvs"
	ModeNFTables = "nftables"

	localClusterCIDR = "ClusterCIDR"
	localNodeCIDR    = "NodeCIDR"
	localBridge      = "BridgeInterface"
	localPrefix      = "InterfaceNamePrefix"
)

const (
	healthzPort = 10256
	metricsPort = 10249
	oomScore    = -999
)

// setDefaults follows kube-proxy 1.37, except in the minimum sync period and lists of addresses,
// where empty has a meaning.
func setDefaults(c *v1alpha1.KubeProxyConfiguration) {
	c.APIVersion, c.Kind = APIVersion, Kind
	c.BindAddress = cmp.Or(c.BindAddress, "0.0.0.0")
	healthz, metrics := netip.IPv4Unspecified(), netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if a, err := network.ParseAddr(splitList(c.BindAddress)[0]); err == nil && a.Is6() {
		healthz, metrics = netip.IPv6Unspecified(), netip.IPv6Loopback()
	}
	c.HealthzBindAddress = withPort(cmp.Or(c.HealthzBindAddress, healthz.String()), healthzPort)
	c.MetricsBindAddress = withPort(cmp.Or(c.MetricsBindAddress, metrics.String()), metricsPort)
	c.DetectLocalMode = cmp.Or(c.DetectLocalMode, localClusterCIDR)
	c.ConfigSyncPeriod.Duration = cmp.Or(c.ConfigSyncPeriod.Duration, 15*time.Minute)
	c.OOMScoreAdj = cmp.Or(c.OOMScoreAdj, new(int32(oomScore)))

	c.ClientConnection.ContentType = cmp.Or(c.ClientConnection.ContentType, "application/vnd.kubernetes.protobuf")
	c.ClientConnection.QPS = cmp.Or(c.ClientConnection.QPS, 5)
	c.ClientConnection.Burst = cmp.Or(c.ClientConnection.Burst, 10)

	c.NFTables.SyncPeriod.Duration = cmp.Or(c.NFTables.SyncPeriod.Duration, services.DefaultSyncPeriod)
	c.NFTables.MinSyncPeriod.Duration = cmp.Or(c.NFTables.MinSyncPeriod.Duration, services.DefaultMinSyncPeriod)
	c.NFTables.MasqueradeBit = cmp.Or(c.NFTables.MasqueradeBit, new(int32(services.DefaultMasqueradeBit)))
	c.IPTables.SyncPeriod.Duration = cmp.Or(c.IPTables.SyncPeriod.Duration, 30*time.Second)
	c.IPTables.MinSyncPeriod.Duration = cmp.Or(c.IPTables.MinSyncPeriod.Duration, time.Second)
	c.IPTables.MasqueradeBit = cmp.Or(c.IPTables.MasqueradeBit, new(int32(services.DefaultMasqueradeBit)))
	c.IPTables.LocalhostNodePorts = cmp.Or(c.IPTables.LocalhostNodePorts, new(true))
	c.IPVS.SyncPeriod.Duration = cmp.Or(c.IPVS.SyncPeriod.Duration, 30*time.Second)

	c.Conntrack.MaxPerCore = cmp.Or(c.Conntrack.MaxPerCore, new(int32(32*1024)))
	c.Conntrack.Min = cmp.Or(c.Conntrack.Min, new(int32(128*1024)))
	c.Conntrack.TCPEstablishedTimeout = cmp.Or(c.Conntrack.TCPEstablishedTimeout, new(metav1.Duration{Duration: 24 * time.Hour}))
	c.Conntrack.TCPCloseWaitTimeout = cmp.Or(c.Conntrack.TCPCloseWaitTimeout, new(metav1.Duration{Duration: time.Hour}))
	logsapi.SetRecommendedLoggingConfiguration(&c.Logging)
}
