package kubeproxy

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"k8s.io/kube-proxy/config/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/weft-proxy/weft/cmd/weft/sysctl"
	"github.com/weft-proxy/weft/frontends/services"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/frontends/source/network"
)

// Settings come from a command line and a file.
type Settings struct {
	// Configuration has defaults, in kube-proxy's form.
	Configuration v1alpha1.KubeProxyConfiguration
	// PeerMode is kube-proxy's mode; weft's is always nftables. It is a default if ModeGiven is false.
	PeerMode  string
	ModeGiven bool
	// "" for a command line.
	File string
	// warnings before weft starts
	Warnings []string

	// An empty NodeName is the host's name.
	services.Config
	// Overrides the API server of the kubeconfig.
	Server string

	// empty if off
	MetricsAddress string
	HealthzAddress string

	// "text" or "json".
	LogFormat string
	LogLevel  slog.Level
	// a file or a flag of kube-proxy gives the level or format
	LogGiven bool

	Conntrack   sysctl.Conntrack
	OOMScoreAdj int
	// Set by a file or a flag: HostGiven for Conntrack or OOMScoreAdj, OOMGiven for the latter.
	HostGiven bool
	OOMGiven  bool

	data []byte
}

// Feature gates with an effect. Unknown gates are accepted, because releases of Kubernetes add and
// remove them.
const (
	gateExternalIPs = "AllowServiceExternalIPs"
)

// silentGates are gates of kube-proxy for what weft always or never does, so no warning names them.
var silentGates = []string{
	gateExternalIPs, localhostNodePorts, "KubeProxyIPVS", "MultiCIDRServiceAllocator", "NFTablesNetlink", "NFTablesProxyMode",
	"PreferSameTrafficDistribution", "WinDSR", "WinOverlay",
}

// settings converts a valid configuration.
func settings(c *v1alpha1.KubeProxyConfiguration, warnings []string) *Settings {
	gates := slices.Sorted(maps.Keys(c.FeatureGates))
	if gates = slices.DeleteFunc(gates, func(name string) bool { return slices.Contains(silentGates, name) }); len(gates) > 0 {
		warnings = append(warnings, "feature gates "+strings.Join(gates, ", ")+": no effect in weft")
	}
	s := &Settings{
		Configuration: *c,
		PeerMode:      cmp.Or(string(c.Mode), ModeIPTables),
		ModeGiven:     c.Mode != "",
		Warnings:      warnings,
		Config: services.Config{
			NodeName: strings.ToLower(strings.TrimSpace(c.HostnameOverride)),
			Detect:   detect(c), AllowExternalIPs: gate(c, gateExternalIPs), LoopbackNodePorts: gate(c, localhostNodePorts),
			MasqueradeAll: c.NFTables.MasqueradeAll, MasqueradeBit: new(int(*c.NFTables.MasqueradeBit)),
			// A period of 0 does not wait; in services.Config it means the default.
			SyncPeriod: c.NFTables.SyncPeriod.Duration, MinSyncPeriod: cmp.Or(c.NFTables.MinSyncPeriod.Duration, -1),
		},
		MetricsAddress: c.MetricsBindAddress,
		HealthzAddress: c.HealthzBindAddress,
		LogFormat:      c.Logging.Format,
		LogLevel:       level(c.Logging.Verbosity),
		OOMScoreAdj:    int(*c.OOMScoreAdj),
		Conntrack: sysctl.Conntrack{
			Max:                   sysctl.MaxFlows(int(*c.Conntrack.MaxPerCore), int(*c.Conntrack.Min), sysctl.CPUs("/")),
			TCPEstablishedTimeout: c.Conntrack.TCPEstablishedTimeout.Duration,
			TCPCloseWaitTimeout:   c.Conntrack.TCPCloseWaitTimeout.Duration,
			UDPTimeout:            c.Conntrack.UDPTimeout.Duration,
			UDPStreamTimeout:      c.Conntrack.UDPStreamTimeout.Duration,
			TCPBeLiberal:          c.Conntrack.TCPBeLiberal,
		},
	}
	s.Configuration.Mode = ModeNFTables
	if len(c.NodePortAddresses) == 0 {
		s.Configuration.NodePortAddresses = []string{primary}
	}
	for _, text := range splitList(c.BindAddress) {
		if a, err := network.ParseAddr(text); err == nil && !a.IsUnspecified() {
			s.NodeAddresses[model.FamilyOf(a)] = a
		}
	}
	s.NodePortAddresses = nodePorts(c.NodePortAddresses)
	return s
}

func gate(c *v1alpha1.KubeProxyConfiguration, name string) *bool {
	if value, ok := c.FeatureGates[name]; ok {
		return &value
	}
	return nil
}

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
		if p, err := network.ParsePrefix(text); err == nil {
			d.CIDRs = append(d.CIDRs, p)
		}
	}
	return d
}

// fallBack copies missing settings from the iptables section if the mode is not nftables, as
// kube-proxy does.
func fallBack(c *v1alpha1.KubeProxyConfiguration) (warnings []string) {
	if c.Mode == ModeNFTables {
		return nil
	}
	if c.IPTables.MasqueradeAll && !c.NFTables.MasqueradeAll {
		c.NFTables.MasqueradeAll = true
		warnings = append(warnings, "iptables.masqueradeAll is used as nftables.masqueradeAll: set that instead")
	}
	c.NFTables.MasqueradeBit = cmp.Or(c.NFTables.MasqueradeBit, c.IPTables.MasqueradeBit)
	return warnings
}

func warnMode(c *v1alpha1.KubeProxyConfiguration) (warnings []string) {
	if c.Mode == ModeIPTables || c.Mode == ModeIPVS {
		warnings = append(warnings, "mode "+string(c.Mode)+": weft always uses nftables")
	}
	if c.Mode != ModeNFTables && len(c.NodePortAddresses) == 0 {
		warnings = append(warnings, "NodePorts answer on the node's own addresses, as in kube-proxy's nftables mode; in its other modes they answer on all local addresses: "+
			"for that, set nodePortAddresses to 0.0.0.0/0 and ::/0")
	}
	return warnings
}

// Write writes a YAML file, as kube-proxy's --write-config-to does.
func (s *Settings) Write(file string) error {
	data, err := yaml.Marshal(s.Configuration)
	if err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	return nil
}
