package kubeproxy

import (
	"strings"
	"time"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/kube-proxy/config/v1alpha1"

	"github.com/weft-proxy/weft/frontends/services"
)

// Options are the flags of kube-proxy.
type Options struct {
	// WriteTo is the file of --write-config-to.
	WriteTo string
	// InitOnly does only the steps that need more than CAP_NET_ADMIN.
	InitOnly bool

	config        v1alpha1.KubeProxyConfiguration
	server        string
	clusterCIDRs  []string
	minSyncPeriod time.Duration
	healthzPort   int
	metricsPort   int
	cleanup       bool
	// set by AddFlags
	all bool
}

// New returns options at their defaults.
func New() *Options {
	o := &Options{healthzPort: healthzPort, metricsPort: metricsPort, minSyncPeriod: services.DefaultMinSyncPeriod}
	setDefaults(&o.config)
	return o
}

// AddFlags adds AddHostFlags and the flags of kube-proxy, except --config and the addresses in
// package daemon. Deprecated flags and flags without effect are hidden.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	o.all = true
	o.AddClientFlags(flags)
	o.addFeatureFlags(flags)
	o.addRuleFlags(flags)
	o.AddHostFlags(flags)
	o.addOtherModes(flags)
	addLogFlags(flags, &o.config.Logging)
	flags.StringVar(&o.WriteTo, "write-config-to", "", "write the configuration in force to this file, and exit")
	flags.BoolVar(&o.InitOnly, "init-only", false, "set up connection tracking, and exit: weft can then run with CAP_NET_ADMIN alone")
	flags.BoolVar(&o.cleanup, "cleanup", false, "see weft cleanup --kube-proxy")
	_ = flags.MarkHidden("iptables-sync-period")
	flags.VisitAll(func(f *pflag.Flag) { f.Hidden = f.Hidden || f.Usage == noEffect || strings.HasPrefix(f.Usage, "see ") })
}

const noEffect = "no effect"

// HideHostFlags hides the host flags, except --oom-score-adj, of a command without capabilities.
func (o *Options) HideHostFlags(flags *pflag.FlagSet) {
	_ = flags.MarkHidden("init-only")
	flagsOf(New().AddHostFlags).VisitAll(func(f *pflag.Flag) {
		if f.Name != "oom-score-adj" {
			_ = flags.MarkHidden(f.Name)
		}
	})
}

// AddHostFlags adds the flags of connection tracking, and --oom-score-adj.
func (o *Options) AddHostFlags(flags *pflag.FlagSet) {
	c := &o.config.Conntrack
	flags.Int32Var(c.MaxPerCore, "conntrack-max-per-core", *c.MaxPerCore, "maximum number of tracked connections for each CPU, at most 1048576 in total; 0 keeps the kernel's limit and ignores --conntrack-min")
	flags.Int32Var(c.Min, "conntrack-min", *c.Min, "minimum of the limit of tracked connections, regardless of the number of CPUs")
	flags.DurationVar(&c.TCPEstablishedTimeout.Duration, "conntrack-tcp-timeout-established", c.TCPEstablishedTimeout.Duration, "how long an idle TCP connection is tracked; 0 keeps the kernel's value")
	flags.DurationVar(&c.TCPCloseWaitTimeout.Duration, "conntrack-tcp-timeout-close-wait", c.TCPCloseWaitTimeout.Duration, "how long a half-closed TCP connection is tracked; 0 keeps the kernel's value")
	flags.BoolVar(&c.TCPBeLiberal, "conntrack-tcp-be-liberal", false, "also track TCP packets outside the window")
	flags.DurationVar(&c.UDPTimeout.Duration, "conntrack-udp-timeout", 0, "how long a UDP flow without replies is tracked; 0 keeps the kernel's value")
	flags.DurationVar(&c.UDPStreamTimeout.Duration, "conntrack-udp-timeout-stream", 0, "how long an idle UDP flow with replies is tracked; 0 keeps the kernel's value")
	flags.Int32Var(o.config.OOMScoreAdj, "oom-score-adj", *o.config.OOMScoreAdj, "OOM score of this process, from -1000 (never killed) to 1000 (killed first)")
}

// AddClientFlags adds flags of every frontend.
func (o *Options) AddClientFlags(flags *pflag.FlagSet) {
	c := &o.config
	flags.StringVar(&c.ClientConnection.Kubeconfig, "kubeconfig", "", "path of a kubeconfig file")
	flags.StringVar(&o.server, "master", "", "address of the API server; overrides the kubeconfig")
	flags.Float32Var(&c.ClientConnection.QPS, "kube-api-qps", c.ClientConnection.QPS, "requests a second to the API server, on average")
	flags.Int32Var(&c.ClientConnection.Burst, "kube-api-burst", c.ClientConnection.Burst, "requests to the API server at once")
	flags.StringVar(&c.ClientConnection.ContentType, "kube-api-content-type", c.ClientConnection.ContentType, "content type of requests to the API server")
	flags.StringVar(&c.HostnameOverride, "hostname-override", "", "name of this node in Kubernetes (default: the host's name)")
	flags.BoolVar(&c.EnableProfiling, "profiling", false, "serve /debug/pprof beside /metrics")
	flags.BoolVar(&c.BindAddressHardFail, "bind-address-hard-fail", false, "exit if an HTTP server cannot listen on its address")
}

// addFeatureFlags also adds flags for old command lines of kube-proxy.
func (o *Options) addFeatureFlags(flags *pflag.FlagSet) {
	c := &o.config
	flags.Var(cliflag.NewMapStringBool(&c.FeatureGates), "feature-gates", "`name=bool` pairs, separated by commas; AllowServiceExternalIPs overrides whether spec.externalIPs is served: by default before Kubernetes 1.40")
	flags.DurationVar(&c.ConfigSyncPeriod.Duration, "config-sync-period", c.ConfigSyncPeriod.Duration, noEffect)
	flags.StringVar(&c.ShowHiddenMetricsForVersion, "show-hidden-metrics-for-version", "", noEffect)
	flags.IntVar(&o.healthzPort, "healthz-port", healthzPort, "see --healthz-bind-address")
	flags.IntVar(&o.metricsPort, "metrics-port", metricsPort, "see --metrics-bind-address")
}

func (o *Options) addRuleFlags(flags *pflag.FlagSet) {
	c := &o.config
	flags.StringSliceVar(&o.clusterCIDRs, "cluster-cidr", nil, "addresses of pods, one CIDR per family; connections to a ClusterIP from other addresses are masqueraded")
	flags.StringVar((*string)(&c.DetectLocalMode), "detect-local-mode", localClusterCIDR,
		"how to detect traffic from pods: ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix")
	flags.StringVar(&c.DetectLocal.BridgeInterface, "pod-bridge-interface", "", "bridge of the pods, for BridgeInterface")
	flags.StringVar(&c.DetectLocal.InterfaceNamePrefix, "pod-interface-name-prefix", "", "prefix of the names of the pods' interfaces, for InterfaceNamePrefix")
	flags.StringVar(&c.BindAddress, "bind-address", c.BindAddress, "address of this node; overrides the address in its Node object. weft does not listen on it")
	flags.StringSliceVar(&c.NodePortAddresses, "nodeport-addresses", nil, `CIDRs of the local addresses that answer on NodePorts, and the words primary (the node's own), localhost (loopback addresses, TCP only) and all (all others)`)
	flags.StringVar((*string)(&c.Mode), "proxy-mode", "", "nftables; kube-proxy's other modes mean nftables, with a warning")
	flags.BoolVar(&c.NFTables.MasqueradeAll, "masquerade-all", false, "masquerade every connection to a ClusterIP")
	flags.Int32Var(c.NFTables.MasqueradeBit, "masquerade-bit", *c.NFTables.MasqueradeBit, "bit of the packet mark that requests masquerading, 0 to 31")
	flags.Int32Var(c.NFTables.MasqueradeBit, "iptables-masquerade-bit", *c.NFTables.MasqueradeBit, "see --masquerade-bit")
	flags.DurationVar(&o.minSyncPeriod, "min-sync-period", o.minSyncPeriod, "minimum time between two updates; the first one after an idle time is sent at once")
	flags.DurationVar(&o.minSyncPeriod, "iptables-min-sync-period", o.minSyncPeriod, "see --min-sync-period")
	flags.DurationVar(&c.NFTables.SyncPeriod.Duration, "iptables-sync-period", c.NFTables.SyncPeriod.Duration,
		"the node is unhealthy if a change waits for twice this time")
}

func (o *Options) addOtherModes(flags *pflag.FlagSet) {
	c := &o.config
	flags.BoolVar(c.IPTables.LocalhostNodePorts, "iptables-localhost-nodeports", *c.IPTables.LocalhostNodePorts, noEffect)
	flags.DurationVar(&c.IPVS.SyncPeriod.Duration, "ipvs-sync-period", c.IPVS.SyncPeriod.Duration, noEffect)
	flags.DurationVar(&c.IPVS.MinSyncPeriod.Duration, "ipvs-min-sync-period", 0, noEffect)
	flags.StringVar(&c.IPVS.Scheduler, "ipvs-scheduler", "", noEffect)
	flags.StringSliceVar(&c.IPVS.ExcludeCIDRs, "ipvs-exclude-cidrs", nil, noEffect)
	flags.BoolVar(&c.IPVS.StrictARP, "ipvs-strict-arp", false, noEffect)
	flags.DurationVar(&c.IPVS.TCPTimeout.Duration, "ipvs-tcp-timeout", 0, noEffect)
	flags.DurationVar(&c.IPVS.TCPFinTimeout.Duration, "ipvs-tcpfin-timeout", 0, noEffect)
	flags.DurationVar(&c.IPVS.UDPTimeout.Duration, "ipvs-udp-timeout", 0, noEffect)
}
