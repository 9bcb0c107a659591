package daemon

import (
	stdcmp "cmp"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/weft-proxy/weft/frontends/services"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/frontends/source"
)

// complete returns the settings and the log of a command line of weft run.
func complete(t *testing.T, args ...string) (*settings, logFlags) {
	t.Helper()
	set := pflag.NewFlagSet("run", pflag.ContinueOnError)
	f := AddFlags(set, VerbRun)
	must(t, set.Parse(args))
	s, _, err := f.complete(t.Output())
	must(t, err)
	return s, f.log.withProxy(s.Settings, set)
}

// TestSettingsReachTheFrontend checks that the frontend, the client of the API server,
// the HTTP servers and the log have the settings of kube-proxy's file.
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
	set, logs := complete(t, "--config", file, "--master", "https://192.0.2.9")
	bit := 3
	if diff := cmp.Diff(services.Config{
		Detect:        render.Detect{Mode: render.DetectInterfacePrefix, Interface: "veth"},
		NodeAddresses: [model.NumFamilies]netip.Addr{{}, netip.MustParseAddr("2001:db8::7")}, AllowExternalIPs: new(false),
		NodePortAddresses: model.NodePorts(netip.MustParsePrefix("192.0.2.0/24")), MasqueradeAll: true, MasqueradeBit: &bit,
		SyncPeriod: 10 * time.Second, MinSyncPeriod: 2 * time.Second,
	}, set.Config, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" {
		t.Errorf("configuration of the frontend (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(source.KubeConfig{
		Kubeconfig: "/k", Server: "https://192.0.2.9", QPS: 7, Burst: 8, ContentType: "application/json", AcceptContentTypes: "text/plain",
		UserAgent: "weft/v1",
	}, kubeConfig(set.Settings, "v1")); diff != "" {
		t.Errorf("configuration of the client (-want +got):\n%s", diff)
	}
	if http := set.HTTP; http.metrics != "127.0.0.1:2" || http.healthz != "127.0.0.1:1" || !http.hardFail || !http.profiling || http.configuration == nil {
		t.Errorf("settings of the HTTP servers: %+v", http)
	}
	if logs.level != slog.LevelDebug || logs.format != "json" {
		t.Errorf("the log has level %v and format %s", logs.level, logs.format)
	}
}

// TestOwnFlags checks that weft's own flags of the log take precedence over kube-proxy's,
// and that a period of 0 is not the default.
func TestOwnFlags(t *testing.T) {
	set, logs := complete(t, "-v=9", "--log-level=error", "--logging-format=json", "--min-sync-period=0", "--metrics-bind-address=", "--healthz-bind-address=127.0.0.1")
	if logs.level != slog.LevelError || logs.format != "json" {
		t.Errorf("the log has level %v and format %s", logs.level, logs.format)
	}
	if got := set.Config.MinSyncPeriod; got >= 0 {
		t.Errorf("the frontend waits %v: want not at all", got)
	}
	if http := set.HTTP; http.metrics != "" || http.healthz != "127.0.0.1:10256" {
		t.Errorf("metrics on %q, healthz on %q", http.metrics, http.healthz)
	}
	if set, _ = complete(t); set.Config.MinSyncPeriod != services.DefaultMinSyncPeriod {
		t.Error("the default is another one")
	}
}

// TestServiceFlags counts connections of Services unless a flag says otherwise, and rejects what
// is not a value.
func TestServiceFlags(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "weft_service_new_connections_total"},
		{[]string{"--service-counters=none"}, ""},
		{[]string{"--service-counters=none", "--service-active-connections"}, "weft_service_active_connections"},
		{[]string{"--service-counters=all"}, `--service-counters "all": want none, service or endpoint`},
	} {
		d, err := parse(t, VerbRun, append(tt.args, "--manifests", t.TempDir(), "--hostname-override", "n", "--cluster-cidr", "10.244.0.0/16")...)
		if err != nil {
			if err.Error() != tt.want {
				t.Errorf("%q: error %v, want %q", tt.args, err, tt.want)
			}
			continue
		}
		// The registry refuses a description that it has.
		probe := prometheus.NewGauge(prometheus.GaugeOpts{Name: stdcmp.Or(tt.want, "weft_service_new_connections_total")})
		if registered := d.registry.Register(probe) != nil; registered != (tt.want != "") {
			t.Errorf("%q: that there is %s is %v", tt.args, tt.want, registered)
		}
	}
}

// TestPodsSocket: the default counts if its directory exists, another path always, and the empty one turns it off.
func TestPodsSocket(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		path  string
		given bool
		want  string
	}{
		{filepath.Join(dir, "s.sock"), false, filepath.Join(dir, "s.sock")},
		{filepath.Join(dir, "none", "s.sock"), false, ""},
		{filepath.Join(dir, "none", "s.sock"), true, filepath.Join(dir, "none", "s.sock")},
		{"", true, ""},
	} {
		if got := podsSocket(tt.path, tt.given); got != tt.want {
			t.Errorf("%q, given %t: %q, want %q", tt.path, tt.given, got, tt.want)
		}
	}
	for path, want := range map[string]bool{"": false, filepath.Join(dir, "s.sock"): true} {
		d, err := parse(t, VerbServices, "--manifests", dir, "--hostname-override", "n", "--cluster-cidr", "10.244.0.0/16", "--kubelet-pods-socket", path)
		must(t, err)
		if follows := d.frontends[0].(interface{ Kubelet() func() error }).Kubelet() != nil; follows != want {
			t.Errorf("--kubelet-pods-socket=%s: it follows the kubelet: %t", path, follows)
		}
	}
}
