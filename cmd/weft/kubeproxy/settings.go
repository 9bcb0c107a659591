package kubeproxy

import (
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"k8s.io/kube-proxy/config/v1alpha1"

	"github.com/weft-proxy/weft/cmd/weft/sysctl"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
)

// Settings are what a command line and a file mean for weft.
type Settings struct {
	// Configuration is what is in force, with its defaults, in kube-proxy's words.
	Configuration v1alpha1.KubeProxyConfiguration
	// File is where it comes from; empty means the command line.
	File string
	// Warnings are what an operator should know before weft starts.
	Warnings []string

	// NodeName is empty where the host's name counts.
	NodeName string
	// Server is the address of the API server, in place of the kubeconfig's.
	Server string

	Detect            render.Detect
	NodeAddresses     [model.Families]netip.Addr
	NodePortAddresses []netip.Prefix
	IgnoreExternalIPs bool
	SyncPeriod        time.Duration
	// MinSyncPeriod is 0 for no wait at all.
	MinSyncPeriod time.Duration

	// MetricsAddress and HealthzAddress are empty where nothing is served.
	MetricsAddress string
	HealthzAddress string

	LogFormat string
	LogLevel  slog.Level
	// LogGiven says that a file or a flag of kube-proxy asks for this log.
	LogGiven bool

	Conntrack   sysctl.Conntrack
	OOMScoreAdj int
	// HostGiven says that a file or a flag asks for Conntrack or OOMScoreAdj, and
	// OOMGiven for the latter; otherwise they are kube-proxy's defaults.
	HostGiven bool
	OOMGiven  bool

	// data is what the file held.
	data []byte
}

// settings makes weft's settings of a configuration that is valid and has its
// defaults.
func settings(c *v1alpha1.KubeProxyConfiguration) *Settings {
	s := &Settings{
		Configuration:     *c,
		NodeName:          strings.ToLower(strings.TrimSpace(c.HostnameOverride)),
		Detect:            detect(c),
		IgnoreExternalIPs: !enabled(c.FeatureGates, externalIPs),
		SyncPeriod:        c.NFTables.SyncPeriod.Duration,
		MinSyncPeriod:     c.NFTables.MinSyncPeriod.Duration,
		MetricsAddress:    c.MetricsBindAddress,
		HealthzAddress:    c.HealthzBindAddress,
		LogFormat:         c.Logging.Format,
		LogLevel:          level(c.Logging.Verbosity),
		OOMScoreAdj:       int(*c.OOMScoreAdj),
		Conntrack: sysctl.Conntrack{
			Max:                   sysctl.MaxFlows(int(*c.Conntrack.MaxPerCore), int(*c.Conntrack.Min), sysctl.CPUs("/")),
			TCPEstablishedTimeout: c.Conntrack.TCPEstablishedTimeout.Duration,
			TCPCloseWaitTimeout:   c.Conntrack.TCPCloseWaitTimeout.Duration,
			UDPTimeout:            c.Conntrack.UDPTimeout.Duration,
			UDPStreamTimeout:      c.Conntrack.UDPStreamTimeout.Duration,
			TCPBeLiberal:          c.Conntrack.TCPBeLiberal,
		},
	}
	if a, err := parseAddr(c.BindAddress); err == nil && !a.IsUnspecified() {
		s.NodeAddresses[model.FamilyOf(a)] = a
	}
	for _, text := range c.NodePortAddresses {
		if p, err := parsePrefix(text); err == nil {
			s.NodePortAddresses = append(s.NodePortAddresses, p)
		}
	}
	return s
}

// detect says how flows from pods are known. Of each family the first CIDR counts.
func detect(c *v1alpha1.KubeProxyConfiguration) render.Detect {
	switch c.DetectLocalMode {
	case localNodeCIDR:
		return render.Detect{Mode: render.DetectNode}
	case localBridge:
		return render.Detect{Mode: render.DetectInterface, Interface: c.DetectLocal.BridgeInterface}
	case localPrefix:
		return render.Detect{Mode: render.DetectInterfacePrefix, Interface: c.DetectLocal.InterfaceNamePrefix}
	}
	d := render.Detect{Mode: render.DetectCIDRs}
	for _, text := range splitList(c.ClusterCIDR) {
		if p, err := parsePrefix(text); err == nil {
			d.CIDRs = append(d.CIDRs, p)
		}
	}
	return d
}

// enabled returns a feature gate.
func enabled(set map[string]bool, name string) bool {
	if on, ok := set[name]; ok {
		return on
	}
	return gates()[name].enabled
}

// fallBack lets the iptables section say what the nftables section does not, where
// kube-proxy went by it.
func fallBack(c *v1alpha1.KubeProxyConfiguration) (warnings []string) {
	if c.Mode == modeNFTables {
		return nil
	}
	if c.IPTables.MasqueradeAll && !c.NFTables.MasqueradeAll {
		c.NFTables.MasqueradeAll = true
		warnings = append(warnings, "iptables.masqueradeAll counts as nftables.masqueradeAll: say so there")
	}
	if bit := c.IPTables.MasqueradeBit; bit != nil && c.NFTables.MasqueradeBit == nil {
		c.NFTables.MasqueradeBit = bit
	}
	return warnings
}

// warnMode says what another mode leads to.
func warnMode(c *v1alpha1.KubeProxyConfiguration) (warnings []string) {
	if c.Mode == modeIPTables || c.Mode == modeIPVS {
		warnings = append(warnings, "mode "+string(c.Mode)+": weft always uses nftables")
	}
	if c.Mode != modeNFTables && len(c.NodePortAddresses) == 0 {
		warnings = append(warnings, "NodePorts answer on the node's own addresses, as in kube-proxy's mode nftables; in its other modes they answer on all: "+
			"for that, set nodePortAddresses to 0.0.0.0/0 and ::/0")
	}
	return warnings
}
