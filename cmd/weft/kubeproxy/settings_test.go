package kubeproxy

import (
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"

	"github.com/weft-proxy/weft/cmd/weft/sysctl"
	"github.com/weft-proxy/weft/frontends/services"
	"github.com/weft-proxy/weft/frontends/services/render"
)

// command returns options whose flags are parsed, with those that another part of
// weft registers.
func command(t *testing.T, args ...string) (*Options, *pflag.FlagSet) {
	t.Helper()
	o, flags := New(), pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags.String("metrics-bind-address", "127.0.0.1:10249", "")
	flags.String("healthz-bind-address", "0.0.0.0:10256", "")
	o.AddFlags(flags)
	must(t, flags.Parse(args))
	return o, flags
}

// fromArgs returns the settings of a command line.
func fromArgs(t *testing.T, args ...string) *Settings {
	t.Helper()
	o, flags := command(t, args...)
	s, err := o.Complete(flags, "")
	must(t, err)
	return s
}

const header = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"

// write writes a file with the header, and returns its path.
func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "proxy.yaml")
	must(t, os.WriteFile(file, []byte(header+text), 0o600))
	return file
}

// fromText returns the settings of a file.
func fromText(t *testing.T, text string, args ...string) *Settings {
	t.Helper()
	o, flags := command(t, args...)
	s, err := o.Complete(flags, write(t, text))
	must(t, err)
	return s
}

// at makes the YAML of one setting.
func at(path, value string) string {
	var b strings.Builder
	parts := strings.Split(path, ".")
	for i, p := range parts {
		b.WriteString(strings.Repeat("  ", i) + p + ":")
		if i < len(parts)-1 {
			b.WriteString("\n")
		}
	}
	return b.String() + " " + value + "\n"
}

// effect is what one setting does.
type effect struct {
	// value is YAML, and flag the same for the command line, where the flag's value
	// is not the same text.
	value, flag string
	// with is what else the file has to say, and args the flags for that.
	with string
	args []string
	// got reads what the value should be found in.
	got  func(*Settings) any
	want any
}

// effects has an entry for each setting that does something.
var effects = map[string]effect{
	"featureGates": {value: "{AllowServiceExternalIPs: false}", flag: "AllowServiceExternalIPs=false",
		got: func(s *Settings) any { return s.AllowExternalIPs }, want: new(false)},
	"clientConnection.kubeconfig":         {value: "/k", got: func(s *Settings) any { return s.Configuration.ClientConnection.Kubeconfig }, want: "/k"},
	"clientConnection.acceptContentTypes": {value: "application/json", got: func(s *Settings) any { return s.Configuration.ClientConnection.AcceptContentTypes }, want: "application/json"},
	"clientConnection.contentType":        {value: "application/json", got: func(s *Settings) any { return s.Configuration.ClientConnection.ContentType }, want: "application/json"},
	"clientConnection.qps":                {value: "7.5", got: func(s *Settings) any { return s.Configuration.ClientConnection.QPS }, want: float32(7.5)},
	"clientConnection.burst":              {value: "30", got: func(s *Settings) any { return s.Configuration.ClientConnection.Burst }, want: int32(30)},
	"logging.format":                      {value: "json", got: func(s *Settings) any { return s.LogFormat }, want: "json"},
	"logging.verbosity":                   {value: "4", got: func(s *Settings) any { return s.LogLevel }, want: slog.LevelDebug},

	"hostnameOverride":    {value: "Node-A", got: func(s *Settings) any { return s.NodeName }, want: "node-a"},
	"bindAddress":         {value: "192.0.2.7", got: func(s *Settings) any { return s.NodeAddresses[0].String() }, want: "192.0.2.7"},
	"healthzBindAddress":  {value: "127.0.0.1:1", got: func(s *Settings) any { return s.HealthzAddress }, want: "127.0.0.1:1"},
	"metricsBindAddress":  {value: "0.0.0.0:2", got: func(s *Settings) any { return s.MetricsAddress }, want: "0.0.0.0:2"},
	"bindAddressHardFail": {value: "true", got: func(s *Settings) any { return s.Configuration.BindAddressHardFail }, want: true},
	"enableProfiling":     {value: "true", got: func(s *Settings) any { return s.Configuration.EnableProfiling }, want: true},

	"mode":                   {value: "ipvs", got: func(s *Settings) any { return slices.Contains(s.Warnings, "mode ipvs: weft always uses nftables") }, want: true},
	"nftables.masqueradeBit": {value: "3", got: func(s *Settings) any { return *s.Configuration.NFTables.MasqueradeBit }, want: int32(3)},
	"nftables.masqueradeAll": {value: "true", got: func(s *Settings) any { return s.Configuration.NFTables.MasqueradeAll }, want: true},
	"nftables.syncPeriod":    {value: "7s", got: func(s *Settings) any { return s.SyncPeriod }, want: 7 * time.Second},
	"nftables.minSyncPeriod": {value: "1s", got: func(s *Settings) any { return s.MinSyncPeriod }, want: time.Second},
	"iptables.masqueradeBit": {value: "5", got: func(s *Settings) any { return *s.Configuration.NFTables.MasqueradeBit }, want: int32(5)},
	"iptables.masqueradeAll": {value: "true", got: func(s *Settings) any { return s.Configuration.NFTables.MasqueradeAll }, want: true},

	"detectLocalMode": {value: "NodeCIDR", got: func(s *Settings) any { return s.Detect.Mode }, want: render.DetectNode},
	"detectLocal.bridgeInterface": {value: "cni0", with: "detectLocalMode: BridgeInterface\n", args: []string{"--detect-local-mode=BridgeInterface"},
		got: func(s *Settings) any { return s.Detect }, want: render.Detect{Mode: render.DetectInterface, Interface: "cni0"}},
	"detectLocal.interfaceNamePrefix": {value: "veth", with: "detectLocalMode: InterfaceNamePrefix\n", args: []string{"--detect-local-mode=InterfaceNamePrefix"},
		got: func(s *Settings) any { return s.Detect }, want: render.Detect{Mode: render.DetectInterfacePrefix, Interface: "veth"}},
	"clusterCIDR": {value: "10.244.0.0/16,fd00::/48", got: func(s *Settings) any { return texts(s.Detect.CIDRs) }, want: "[10.244.0.0/16 fd00::/48]"},
	"nodePortAddresses": {value: "[192.0.2.0/24, 2001:db8::/32]", flag: "192.0.2.0/24,2001:db8::/32",
		got: func(s *Settings) any { return texts(s.NodePortAddresses.Prefixes) }, want: "[192.0.2.0/24 2001:db8::/32]"},

	"oomScoreAdj": {value: "-500", got: func(s *Settings) any { return s.OOMScoreAdj }, want: -500},
	"conntrack.maxPerCore": {value: "500000", got: func(s *Settings) any { return s.Conntrack.Max },
		want: sysctl.MaxFlows(500000, 128*1024, sysctl.CPUs("/"))},
	"conntrack.min":                   {value: "4000000", got: func(s *Settings) any { return s.Conntrack.Max }, want: 4000000},
	"conntrack.tcpEstablishedTimeout": {value: "2h", got: func(s *Settings) any { return s.Conntrack.TCPEstablishedTimeout }, want: 2 * time.Hour},
	"conntrack.tcpCloseWaitTimeout":   {value: "2m", got: func(s *Settings) any { return s.Conntrack.TCPCloseWaitTimeout }, want: 2 * time.Minute},
	"conntrack.tcpBeLiberal":          {value: "true", got: func(s *Settings) any { return s.Conntrack.TCPBeLiberal }, want: true},
	"conntrack.udpTimeout":            {value: "20s", got: func(s *Settings) any { return s.Conntrack.UDPTimeout }, want: 20 * time.Second},
	"conntrack.udpStreamTimeout":      {value: "90s", got: func(s *Settings) any { return s.Conntrack.UDPStreamTimeout }, want: 90 * time.Second},
}

// TestEverySettingHasItsEffect says what every setting of a file, and every flag
// for it, does; a setting without an effect is named.
//
// Behaviour: 35, 85, 90, 146, 147, 148, 149, 150.
func TestEverySettingHasItsEffect(t *testing.T) {
	for _, f := range fields() {
		e, ok := effects[f.path]
		if f.unused != "" && !f.fallback {
			if ok {
				t.Errorf("%s has an effect and a reason for having none", f.path)
			}
			continue
		}
		if !ok {
			t.Errorf("no test shows the effect of %s", f.path)
			continue
		}
		if diff := cmp.Diff(e.want, e.got(fromText(t, e.with+at(f.path, e.value)))); diff != "" {
			t.Errorf("%s: %s in a file (-want +got):\n%s", f.path, e.value, diff)
		}
		if e.with == "" && cmp.Equal(e.want, e.got(fromText(t, ""))) {
			t.Errorf("%s: %v is what there is without it", f.path, e.want)
		}
		value := e.flag
		if value == "" {
			value = e.value
		}
		for _, name := range f.flags {
			if strings.HasSuffix(name, "-port") {
				continue // TestDeprecatedPorts
			}
			if diff := cmp.Diff(e.want, e.got(fromArgs(t, append(e.args, "--"+name+"="+value)...))); diff != "" {
				t.Errorf("--%s=%s (-want +got):\n%s", name, value, diff)
			}
		}
	}
}

func texts[T interface{ String() string }](list []T) string {
	var out []string
	for _, v := range list {
		out = append(out, v.String())
	}
	return "[" + strings.Join(out, " ") + "]"
}

// TestDefaults checks that the defaults are those of kube-proxy in nftables mode, except
// for the minimum sync period.
//
// Behaviour: 19, 85, 90, 148, 149.
func TestDefaults(t *testing.T) {
	for name, s := range map[string]*Settings{"flags": fromArgs(t), "file": fromText(t, "mode: nftables\n")} {
		if len(s.Warnings) > 0 {
			t.Errorf("%s: warnings without a reason: %q", name, s.Warnings)
		}
		bit := 14
		want := Settings{
			Config:         services.Config{SyncPeriod: 30 * time.Second, MinSyncPeriod: 100 * time.Millisecond, MasqueradeBit: &bit},
			MetricsAddress: "127.0.0.1:10249", HealthzAddress: "0.0.0.0:10256",
			LogFormat: "text", OOMScoreAdj: -999,
			Conntrack: sysctl.Conntrack{
				Max:                   sysctl.MaxFlows(32768, 131072, sysctl.CPUs("/")),
				TCPEstablishedTimeout: 24 * time.Hour, TCPCloseWaitTimeout: time.Hour,
			},
		}
		got := Settings{
			Config: s.Config, MetricsAddress: s.MetricsAddress, HealthzAddress: s.HealthzAddress,
			LogFormat: s.LogFormat, LogLevel: s.LogLevel, OOMScoreAdj: s.OOMScoreAdj, Conntrack: s.Conntrack,
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(Settings{}), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if bit := *s.Configuration.NFTables.MasqueradeBit; bit != 14 {
			t.Errorf("%s: masquerade bit %d: want 14", name, bit)
		}
		if p := s.Configuration.NodePortAddresses; len(p) != 1 || p[0] != "primary" {
			t.Errorf("%s: NodePort addresses %q: want primary", name, p)
		}
	}
}

// TestKubeadm reads the file that kubeadm 1.36 writes.
//
// Behaviour: 19, 147, 148, 149, 150.
func TestKubeadm(t *testing.T) {
	o, flags := command(t, "--hostname-override=node-a")
	s, err := o.Complete(flags, "../../../deploy/examples/kube-proxy/kubeadm.conf")
	must(t, err)
	if len(s.Warnings) != 1 || !strings.HasPrefix(s.Warnings[0], "NodePorts answer on the node's own addresses") {
		t.Errorf("warnings %q: want one, about the default of NodePorts", s.Warnings)
	}
	if got := texts(s.Detect.CIDRs); got != "[10.244.0.0/16]" || s.NodeName != "node-a" || s.Configuration.ClientConnection.Kubeconfig != "/var/lib/kube-proxy/kubeconfig.conf" {
		t.Errorf("pods are %s, the node %q, the kubeconfig %q", got, s.NodeName, s.Configuration.ClientConnection.Kubeconfig)
	}
	if s.MetricsAddress != "127.0.0.1:10249" || s.HealthzAddress != "0.0.0.0:10256" || s.MinSyncPeriod != 100*time.Millisecond || s.OOMScoreAdj != -999 || s.OOMGiven {
		t.Errorf("defaults are %+v", s)
	}
}

// TestExample reads the example that explains every setting.
func TestExample(t *testing.T) {
	o, flags := command(t)
	s, err := o.Complete(flags, "../../../deploy/examples/kube-proxy/config.yaml")
	if err != nil || len(s.Warnings) > 0 {
		t.Fatalf("error %v, warnings %q: want neither", err, s.Warnings)
	}
	text, err := os.ReadFile(s.File)
	must(t, err)
	for _, f := range fields() {
		if name := f.path[strings.LastIndexByte(f.path, '.')+1:]; f.unused == "" && !strings.Contains(string(text), name+":") {
			t.Errorf("the example says nothing of %s", f.path)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
