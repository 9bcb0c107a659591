package kubeproxy

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"k8s.io/kube-proxy/config/v1alpha1"
)

// field is a setting of a KubeProxyConfiguration.
type field struct {
	path string
	// flags are the flags that set it; messages name the first.
	flags []string
	// unused is why the setting has no effect in weft; empty if it has one.
	unused string
	// fallback settings have an effect only if the mode is not nftables.
	fallback bool
}

// Why settings have no effect.
const (
	ofIPTables  = "it is of mode iptables"
	ofIPVS      = "it is of mode ipvs"
	ofWindows   = "it is for Windows"
	ofResync    = "changes take effect at once, so there is no periodic resync"
	ofLogOutput = "weft writes each line of its log to standard error at once"
)

// fields returns every setting. A test fails if kube-proxy has a setting that is not
// listed.
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

// eachSetting calls f for every setting of c, except apiVersion and kind. A list is one
// setting, and so is a value with its own UnmarshalJSON.
func eachSetting(c *v1alpha1.KubeProxyConfiguration, f func(path string, v reflect.Value)) {
	walk("", reflect.ValueOf(c).Elem(), f)
}

func walk(path string, v reflect.Value, f func(string, reflect.Value)) {
	if _, ok := v.Addr().Interface().(json.Unmarshaler); ok || v.Kind() != reflect.Struct {
		if path != "apiVersion" && path != "kind" {
			f(path, v)
		}
		return
	}
	in := make(map[string]reflect.Value)
	jsonFields(v, in)
	for name, sub := range in {
		p := name
		if path != "" {
			p = path + "." + name
		}
		walk(p, sub, f)
	}
}

// unusedSettings returns a line for each reason why settings of c have no effect.
// Settings at their defaults are left out.
func unusedSettings(c *v1alpha1.KubeProxyConfiguration) []string {
	plain := new(v1alpha1.KubeProxyConfiguration)
	setDefaults(plain)
	defaults := make(map[string]any)
	eachSetting(plain, func(path string, v reflect.Value) { defaults[path] = v.Interface() })
	table := make(map[string]field)
	for _, f := range fields() {
		table[f.path] = f
	}
	reasons := make(map[string][]string)
	eachSetting(c, func(path string, v reflect.Value) {
		f := table[path]
		if f.unused == "" || f.fallback && c.Mode != ModeNFTables || same(v, defaults[path]) {
			return
		}
		reasons[f.unused] = append(reasons[f.unused], path)
	})
	var out []string
	for reason, paths := range reasons {
		slices.Sort(paths)
		out = append(out, strings.Join(paths, ", ")+": no effect: "+reason)
	}
	slices.Sort(out)
	return out
}

// same reports whether a setting has its default value. An empty list equals nil.
func same(v reflect.Value, def any) bool {
	if (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0 {
		return reflect.ValueOf(def).Len() == 0
	}
	return reflect.DeepEqual(v.Interface(), def)
}
