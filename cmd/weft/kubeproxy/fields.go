package kubeproxy

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-proxy/config/v1alpha1"
)

type field struct {
	path string
	// Errors name the given flags, or the first.
	flags []string
	// "" if it has an effect
	unused string
	// fallback settings have an effect if the mode is not nftables, despite unused.
	fallback bool
}

const (
	ofIPTables  = "it is of mode iptables"
	ofIPVS      = "it is of mode ipvs"
	ofWindows   = "it is for Windows"
	ofResync    = "changes take effect at once, so there is no periodic resync"
	ofLogOutput = "weft writes each line of its log to standard error at once"
)

// A test checks that every setting is here.
func fields() []field {
	return []field{
		{path: "featureGates", flags: []string{"feature-gates"}},
		{path: "clientConnection.kubeconfig", flags: []string{"kubeconfig"}},
		{path: "clientConnection.acceptContentTypes"},
		{path: "clientConnection.contentType", flags: []string{"kube-api-content-type"}},
		{path: "clientConnection.qps", flags: []string{"kube-api-qps"}},
		{path: "clientConnection.burst", flags: []string{"kube-api-burst"}},
		{path: "logging.format", flags: []string{"logging-format"}},
		{path: "logging.verbosity", flags: []string{"v"}},
		{path: "logging.flushFrequency", flags: []string{"log-flush-frequency"}, unused: ofLogOutput},
		{path: "logging.vmodule", flags: []string{"vmodule"}, unused: "weft's log has one level for all files: use --log-level"},
		{path: "logging.options.text.splitStream", flags: []string{"log-text-split-stream"}, unused: ofLogOutput},
		{path: "logging.options.text.infoBufferSize", flags: []string{"log-text-info-buffer-size"}, unused: ofLogOutput},
		{path: "logging.options.json.splitStream", flags: []string{"log-json-split-stream"}, unused: ofLogOutput},
		{path: "logging.options.json.infoBufferSize", flags: []string{"log-json-info-buffer-size"}, unused: ofLogOutput},

		{path: "hostnameOverride", flags: []string{"hostname-override"}},
		{path: "bindAddress", flags: []string{"bind-address"}},
		{path: "healthzBindAddress", flags: []string{"healthz-bind-address", "healthz-port"}},
		{path: "metricsBindAddress", flags: []string{"metrics-bind-address", "metrics-port"}},
		{path: "bindAddressHardFail", flags: []string{"bind-address-hard-fail"}},
		{path: "enableProfiling", flags: []string{"profiling"}},
		{path: "showHiddenMetricsForVersion", flags: []string{"show-hidden-metrics-for-version"}, unused: "weft hides no metrics"},

		{path: "mode", flags: []string{"proxy-mode"}},
		{path: "nftables.masqueradeBit", flags: []string{"masquerade-bit", "iptables-masquerade-bit"}},
		{path: "nftables.masqueradeAll", flags: []string{"masquerade-all"}},
		{path: "nftables.syncPeriod", flags: []string{"iptables-sync-period"}},
		{path: "nftables.minSyncPeriod", flags: []string{"min-sync-period", "iptables-min-sync-period"}},
		{path: "iptables.masqueradeBit", fallback: true, unused: ofIPTables},
		{path: "iptables.masqueradeAll", fallback: true, unused: ofIPTables},
		{path: "iptables.localhostNodePorts", flags: []string{"iptables-localhost-nodeports"}, unused: ofIPTables},
		{path: "iptables.syncPeriod", unused: ofIPTables},
		{path: "iptables.minSyncPeriod", unused: ofIPTables},
		{path: "ipvs.syncPeriod", flags: []string{"ipvs-sync-period"}, unused: ofIPVS},
		{path: "ipvs.minSyncPeriod", flags: []string{"ipvs-min-sync-period"}, unused: ofIPVS},
		{path: "ipvs.scheduler", flags: []string{"ipvs-scheduler"}, unused: ofIPVS},
		{path: "ipvs.excludeCIDRs", flags: []string{"ipvs-exclude-cidrs"}, unused: ofIPVS},
		{path: "ipvs.strictARP", flags: []string{"ipvs-strict-arp"}, unused: ofIPVS},
		{path: "ipvs.tcpTimeout", flags: []string{"ipvs-tcp-timeout"}, unused: ofIPVS},
		{path: "ipvs.tcpFinTimeout", flags: []string{"ipvs-tcpfin-timeout"}, unused: ofIPVS},
		{path: "ipvs.udpTimeout", flags: []string{"ipvs-udp-timeout"}, unused: ofIPVS},
		{path: "winkernel.networkName", unused: ofWindows},
		{path: "winkernel.sourceVip", unused: ofWindows},
		{path: "winkernel.enableDSR", unused: ofWindows},
		{path: "winkernel.rootHnsEndpointName", unused: ofWindows},
		{path: "winkernel.forwardHealthCheckVip", unused: ofWindows},

		{path: "detectLocalMode", flags: []string{"detect-local-mode"}},
		{path: "detectLocal.bridgeInterface", flags: []string{"pod-bridge-interface"}},
		{path: "detectLocal.interfaceNamePrefix", flags: []string{"pod-interface-name-prefix"}},
		{path: "clusterCIDR", flags: []string{"cluster-cidr"}},
		{path: "nodePortAddresses", flags: []string{"nodeport-addresses"}},

		{path: "oomScoreAdj", flags: []string{"oom-score-adj"}},
		{path: "conntrack.maxPerCore", flags: []string{"conntrack-max-per-core"}},
		{path: "conntrack.min", flags: []string{"conntrack-min"}},
		{path: "conntrack.tcpEstablishedTimeout", flags: []string{"conntrack-tcp-timeout-established"}},
		{path: "conntrack.tcpCloseWaitTimeout", flags: []string{"conntrack-tcp-timeout-close-wait"}},
		{path: "conntrack.tcpBeLiberal", flags: []string{"conntrack-tcp-be-liberal"}},
		{path: "conntrack.udpTimeout", flags: []string{"conntrack-udp-timeout"}},
		{path: "conntrack.udpStreamTimeout", flags: []string{"conntrack-udp-timeout-stream"}},
		{path: "configSyncPeriod", flags: []string{"config-sync-period"}, unused: ofResync},
		{path: "portRange", unused: "kube-proxy does not use it any more"},
		{path: "windowsRunAsService", unused: ofWindows},
	}
}

// unusedSettings returns a warning for each reason, about values other than defaults. name returns the
// name of a path in the file.
func unusedSettings(c *v1alpha1.KubeProxyConfiguration, name func(path string) string) []string {
	plain := new(v1alpha1.KubeProxyConfiguration)
	setDefaults(plain)
	is, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
	defaults, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(plain)
	reasons := make(map[string][]string)
	for _, f := range fields() {
		if f.unused == "" || f.fallback && c.Mode != ModeNFTables || reflect.DeepEqual(setting(is, f.path), setting(defaults, f.path)) {
			continue
		}
		reasons[f.unused] = append(reasons[f.unused], name(f.path))
	}
	var out []string
	for reason, paths := range reasons {
		slices.Sort(paths)
		out = append(out, strings.Join(paths, ", ")+": no effect: "+reason)
	}
	slices.Sort(out)
	return out
}

func setting(all map[string]any, path string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(all, strings.Split(path, ".")...)
	if list, ok := value.([]any); ok && len(list) == 0 {
		return nil
	}
	return value
}
