package main

import (
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/frontends/services"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/frontends/services/source"
)

// begin makes the settings of a command line, as weft run does.
func begin(t *testing.T, args ...string) (*configuration, *logging, *endpoints) {
	t.Helper()
	conf, logs, http, cmd := newConfiguration(), new(logging), new(endpoints), new(cobra.Command)
	logs.addFlags(cmd.Flags())
	http.addFlags(cmd.Flags())
	conf.options.AddFlags(cmd.Flags())
	cmd.Flags().StringArrayVar(&conf.files, "config", nil, "")
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	cmd.SetErr(t.Output())
	if _, err := conf.begin(cmd, logs, http); err != nil {
		t.Fatal(err)
	}
	return conf, logs, http
}

// TestSettingsReachTheFrontend: what kube-proxy's file says is what the frontend, the
// client of the API server, the HTTP servers and the log are told.
//
// Behaviour: 35, 85, 90, 146, 147, 148, 150, 151.
func TestSettingsReachTheFrontend(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.conf")
	if err := os.WriteFile(file, []byte(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
bindAddress: "2001:db8::7"
bindAddressHardFail: true
enableProfiling: true
healthzBindAddress: 127.0.0.1:1
metricsBindAddress: 127.0.0.1:2
detectLocalMode: InterfaceNamePrefix
detectLocal: {interfaceNamePrefix: veth}
nodePortAddresses: [192.0.2.0/24]
nftables: {masqueradeAll: true, masqueradeBit: 3, syncPeriod: 10s, minSyncPeriod: 2s}
clientConnection: {kubeconfig: /k, qps: 7, burst: 8, contentType: application/json, acceptContentTypes: text/plain}
featureGates: {AllowServiceExternalIPs: false}
logging: {format: json, verbosity: 5}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	conf, logs, http := begin(t, "--config", file, "--master", "https://192.0.2.9")
	bit := 3
	if diff := cmp.Diff(services.Config{
		Detect:        render.Detect{Mode: render.DetectInterfacePrefix, Interface: "veth"},
		NodeAddresses: [model.Families]netip.Addr{{}, netip.MustParseAddr("2001:db8::7")}, IgnoreExternalIPs: true,
		NodePortAddresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, MasqueradeAll: true, MasqueradeBit: &bit,
		SyncPeriod: 10 * time.Second, MinSyncPeriod: 2 * time.Second,
	}, servicesConfig(conf.settings), cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" {
		t.Errorf("the frontend is told (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(source.KubeConfig{
		Kubeconfig: "/k", Server: "https://192.0.2.9", QPS: 7, Burst: 8, ContentType: "application/json", AcceptContentTypes: "text/plain",
		UserAgent: "weft/" + version,
	}, kubeConfig(conf.settings)); diff != "" {
		t.Errorf("the client is told (-want +got):\n%s", diff)
	}
	if http.metrics != "127.0.0.1:2" || http.healthz != "127.0.0.1:1" || !http.hardFail || !http.profiling || http.configuration == nil {
		t.Errorf("the HTTP servers are told %+v", http)
	}
	if logs.level != slog.LevelDebug || logs.format != "json" {
		t.Errorf("the log is told %v, %s", logs.level, logs.format)
	}
}

// TestOwnFlags: weft's own flags of the log go before kube-proxy's, and no wait at all
// is something else than the default.
func TestOwnFlags(t *testing.T) {
	conf, logs, http := begin(t, "-v=9", "--log-level=error", "--logging-format=json", "--min-sync-period=0", "--metrics-bind-address=", "--healthz-bind-address=127.0.0.1")
	if logs.level != slog.LevelError || logs.format != "json" {
		t.Errorf("the log is told %v, %s", logs.level, logs.format)
	}
	if got := servicesConfig(conf.settings).MinSyncPeriod; got >= 0 {
		t.Errorf("the frontend waits %v: want not at all", got)
	}
	if http.metrics != "" || http.healthz != "127.0.0.1:10256" {
		t.Errorf("metrics on %q, healthz on %q", http.metrics, http.healthz)
	}
	if conf, _, _ = begin(t); servicesConfig(conf.settings).MinSyncPeriod != services.DefaultMinSyncPeriod {
		t.Error("the default is another one")
	}
}
