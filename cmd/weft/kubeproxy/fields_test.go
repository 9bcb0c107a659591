package kubeproxy

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/kube-proxy/config/v1alpha1"
)

// TestFieldsAreComplete fails if the type of the file has a setting that the table does
// not name, so that none is dropped silently.
//
// Behaviour: 146, 147, 148, 149, 150.
func TestFieldsAreComplete(t *testing.T) {
	var c v1alpha1.KubeProxyConfiguration
	setDefaults(&c) // or optional values would be leaves of no type
	table := make(map[string]bool)
	for _, f := range fields() {
		if table[f.path] {
			t.Errorf("%s is in the table twice", f.path)
		}
		table[f.path] = true
	}
	eachSetting(&c, func(path string, _ reflect.Value) {
		if !table[path] {
			t.Errorf("setting %s is not in the table: say what it does, or why it does nothing", path)
		}
		delete(table, path)
	})
	for path := range table {
		t.Errorf("%s is in the table, and KubeProxyConfiguration has no such setting", path)
	}
}

// flagsOfKubeProxy are those that kube-proxy 1.37.2 has (cmd/kube-proxy/app,
// k8s.io/component-base/logs/api/v1), but for --config and the two addresses,
// which other parts of weft register, and for those of its libraries.
const flagsOfKubeProxy = `
bind-address bind-address-hard-fail cleanup cluster-cidr config-sync-period conntrack-max-per-core conntrack-min conntrack-tcp-be-liberal
conntrack-tcp-timeout-close-wait conntrack-tcp-timeout-established conntrack-udp-timeout conntrack-udp-timeout-stream detect-local-mode
feature-gates healthz-port hostname-override init-only iptables-localhost-nodeports iptables-masquerade-bit iptables-min-sync-period
iptables-sync-period ipvs-exclude-cidrs ipvs-min-sync-period ipvs-scheduler ipvs-strict-arp ipvs-sync-period ipvs-tcp-timeout
ipvs-tcpfin-timeout ipvs-udp-timeout kube-api-burst kube-api-content-type kube-api-qps kubeconfig log-flush-frequency log-json-info-buffer-size
log-json-split-stream log-text-info-buffer-size log-text-split-stream logging-format masquerade-all master metrics-port nodeport-addresses
oom-score-adj pod-bridge-interface pod-interface-name-prefix profiling proxy-mode show-hidden-metrics-for-version v vmodule write-config-to`

// TestFlagsAreComplete compares weft's flags with kube-proxy's.
//
// Behaviour: 141, 146, 147, 148, 149, 150.
func TestFlagsAreComplete(t *testing.T) {
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	New().AddFlags(flags)
	// weft's own names for what the file has under nftables.
	want := map[string]bool{"masquerade-bit": true, "min-sync-period": true}
	for _, name := range strings.Fields(flagsOfKubeProxy) {
		want[name] = true
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if !want[f.Name] {
			t.Errorf("--%s is not a flag of kube-proxy", f.Name)
		}
		delete(want, f.Name)
	})
	for name := range want {
		t.Errorf("--%s of kube-proxy is missing", name)
	}
	// Every flag but these is one of a setting.
	others := []string{"cleanup", "init-only", "write-config-to", "master"}
	ofSettings := make(map[string]bool)
	for _, f := range fields() {
		for _, name := range f.flags {
			ofSettings[name] = true
		}
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if !ofSettings[f.Name] && !slices.Contains(others, f.Name) {
			t.Errorf("--%s belongs to no setting", f.Name)
		}
	})
}

// TestUnusedSettings: what has no effect is named, with the reason, in a file and on
// the command line; at its default it is not worth a word.
//
// Behaviour: 146, 148, 150.
func TestUnusedSettings(t *testing.T) {
	values := map[string]string{
		"logging.flushFrequency": "1s", "logging.vmodule": "[{filePattern: a, verbosity: 1}]",
		"logging.options.text.infoBufferSize": "1Ki", "logging.options.json.infoBufferSize": "1Ki",
		"showHiddenMetricsForVersion": `"1.35"`, "iptables.masqueradeBit": "3", "iptables.localhostNodePorts": "false",
		"ipvs.scheduler": "rr", "ipvs.excludeCIDRs": "[10.0.0.0/8]", "winkernel.networkName": "n", "winkernel.sourceVip": "192.0.2.1",
		"winkernel.rootHnsEndpointName": "n", "portRange": "1-2",
	}
	flagValues := map[string]string{"logging.vmodule": "a=1", "ipvs.excludeCIDRs": "10.0.0.0/8", "showHiddenMetricsForVersion": "1.35"}
	for _, f := range fields() {
		if f.unused == "" {
			continue
		}
		value := values[f.path]
		switch last := f.path[strings.LastIndexByte(f.path, '.')+1:]; {
		case value != "":
		case strings.HasSuffix(last, "Period") || strings.HasSuffix(last, "Timeout"):
			value = "77s"
		default:
			value = "true"
		}
		s := fromText(t, "mode: nftables\n"+at(f.path, value))
		if want := f.path + ": no effect: " + f.unused; !slices.Contains(s.Warnings, want) || len(s.Warnings) != 1 {
			t.Errorf("%s: %s: warnings %q: want %q", f.path, value, s.Warnings, want)
		}
		if v, ok := flagValues[f.path]; ok {
			value = v
		}
		for _, name := range f.flags {
			if w := fromArgs(t, "--"+name+"="+value).Warnings; len(w) != 1 || w[0] != "--"+name+": no effect in weft" {
				t.Errorf("--%s=%s: warnings %q", name, value, w)
			}
		}
	}
	s := fromText(t, "mode: ipvs\nipvs: {scheduler: lc, strictARP: true}\nwinkernel: {enableDSR: true}\nnodePortAddresses: [primary]\n")
	want := []string{
		"mode ipvs: weft always uses nftables",
		"ipvs.scheduler, ipvs.strictARP: no effect: it is of mode ipvs",
		"winkernel.enableDSR: no effect: it is for Windows",
	}
	if !slices.Equal(s.Warnings, want) {
		t.Errorf("warnings %q: want %q", s.Warnings, want)
	}
}

// TestFallBack: in another mode than nftables the iptables section counts where the
// nftables section is silent, as that is what kube-proxy went by.
//
// Behaviour: 85, 148.
func TestFallBack(t *testing.T) {
	for _, tt := range []struct {
		text string
		all  bool
		bit  int32
	}{
		{"iptables: {masqueradeAll: true, masqueradeBit: 5}\n", true, 5},
		{"mode: iptables\niptables: {masqueradeAll: true, masqueradeBit: 5}\nnftables: {masqueradeBit: 6}\n", true, 6},
		{"mode: nftables\niptables: {masqueradeAll: true, masqueradeBit: 5}\n", false, 14},
	} {
		c := fromText(t, tt.text).Configuration.NFTables
		if c.MasqueradeAll != tt.all || *c.MasqueradeBit != tt.bit {
			t.Errorf("%s: masquerade all %v, bit %d: want %v, %d", tt.text, c.MasqueradeAll, *c.MasqueradeBit, tt.all, tt.bit)
		}
	}
}

// TestGates checks that gates without effect, known or not, are named in a warning.
//
// Behaviour: 35, 150.
func TestGates(t *testing.T) {
	silent := "AllowServiceExternalIPs: true, KubeProxyIPVS: false, KubeProxyNFTablesLocalhostNodePorts: false, NFTablesNetlink: true"
	if w := fromText(t, "mode: nftables\nfeatureGates: {WatchList: false, NoSuchThing: true, "+silent+"}\n").Warnings; len(w) != 1 || w[0] != "feature gates NoSuchThing, WatchList: no effect in weft" {
		t.Errorf("warnings %q", w)
	}
	for name, field := range map[string]func(*Settings) *bool{
		"AllowServiceExternalIPs":             func(s *Settings) *bool { return s.AllowExternalIPs },
		"KubeProxyNFTablesLocalhostNodePorts": func(s *Settings) *bool { return s.LoopbackNodePorts },
	} {
		if got := field(fromText(t, "")); got != nil {
			t.Errorf("%s is not set, got %v", name, *got)
		}
		for _, value := range []bool{false, true} {
			if got := field(fromText(t, fmt.Sprintf("featureGates: {%s: %v}\n", name, value))); got == nil || *got != value {
				t.Errorf("%s: %v: got %v", name, value, got)
			}
		}
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

// jsonFields adds the fields of a struct, and of inlined structs, by their JSON names.
func jsonFields(v reflect.Value, out map[string]reflect.Value) {
	for i := range v.NumField() {
		name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		switch {
		case slices.Contains(strings.Split(options, ","), "inline") || v.Type().Field(i).Anonymous && name == "":
			jsonFields(v.Field(i), out)
		case name != "" && name != "-":
			out[name] = v.Field(i)
		}
	}
}
