package node

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
)

func valid() Config {
	return Config{
		Name:       "node-1",
		Addresses:  []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")},
		Kubeconfig: "/run/node/kubeconfig", Root: "/run/node",
		ClusterDNS: []netip.Addr{netip.MustParseAddr("10.96.0.10")},
		Labels:     map[string]string{"topology.kubernetes.io/zone": "a"},
		Runtime:    runtimeFunc(nil),
	}
}

type runtimeFunc func(ctx context.Context, socket string) error

func (f runtimeFunc) Serve(ctx context.Context, socket string) error { return f(ctx, socket) }

func TestConfigValidate(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		change     func(*Config)
	}{
		{"valid", "", func(*Config) {}},
		{"one address", "", func(c *Config) { c.Addresses = c.Addresses[1:] }},
		{"no name", "no name", func(c *Config) { c.Name = "" }},
		{"no address", "0 addresses", func(c *Config) { c.Addresses = nil }},
		{"one family", "of one family", func(c *Config) { c.Addresses[1] = c.Addresses[0] }},
		{"no kubeconfig", "no kubeconfig", func(c *Config) { c.Kubeconfig = "" }},
		{"relative root", `root "run"`, func(c *Config) { c.Root = "run" }},
		{"root too long for sockets", "at most 60 bytes", func(c *Config) { c.Root = "/" + strings.Repeat("a", 60) }},
		{"no runtime", "no runtime", func(c *Config) { c.Runtime = nil }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := valid()
			tc.change(&c)
			err := c.validate()
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("validate() = %v, want %q", err, tc.want)
			}
		})
	}
}

// TestServerIsValid asks the kubelet's own validation.
func TestServerIsValid(t *testing.T) {
	c := valid()
	c.setDefaults()
	s, err := newServer(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := options.ValidateKubeletServer(s); err != nil {
		t.Error(err)
	}
	if err := kubeletconfig.ValidateKubeletConfiguration(&s.KubeletConfiguration, utilfeature.DefaultFeatureGate); err != nil {
		t.Error(err)
	}
	if got, want := s.NodeIP, "192.0.2.1,2001:db8::1"; got != want {
		t.Errorf("NodeIP = %q, want %q", got, want)
	}
	for name, path := range map[string]string{
		"RootDirectory": s.RootDirectory, "CertDirectory": s.CertDirectory, "PodLogsDir": s.PodLogsDir, "VolumePluginDir": s.VolumePluginDir,
	} {
		if !strings.HasPrefix(path, c.Root+"/") {
			t.Errorf("%s = %q, want it below %s", name, path, c.Root)
		}
	}
}

func TestMachineHasCapacityOfConfig(t *testing.T) {
	c := valid()
	c.setDefaults()
	m, err := newMachine(c)
	if err != nil {
		t.Fatal(err)
	}
	info, err := m.MachineInfo()
	if err != nil || info.NumCores != 8 || info.MemoryCapacity != 16<<30 {
		t.Errorf("MachineInfo() = %+v, %v; want 8 cores and 16 GiB", info, err)
	}
	version, err := m.VersionInfo()
	if err != nil || version.KernelVersion == "" || version.ContainerOsVersion == "" {
		t.Errorf("VersionInfo() = %+v, %v; want the names of kernel and distribution", version, err)
	}
}

func TestSystemName(t *testing.T) {
	for content, want := range map[string]string{
		"NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 13\"\n": "Debian GNU/Linux 13",
		"PRETTY_NAME=Plain\n":                           "Plain",
		"NAME=x\n":                                      "Linux",
	} {
		path := filepath.Join(t.TempDir(), "os-release")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := systemName(path); err != nil || got != want {
			t.Errorf("systemName(%q) = %q, %v; want %q", content, got, err, want)
		}
	}
}

// TestServeReturnsWhenTheSocketAnswers also has a stale socket.
func TestServeReturnsWhenTheSocketAnswers(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "cri.sock")
	if err := os.WriteFile(socket, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	served, stop, err := serve(t.Context(), runtimeFunc(func(ctx context.Context, socket string) error {
		l, err := net.Listen("unix", socket)
		if err != nil {
			return err
		}
		<-ctx.Done()
		return l.Close()
	}), socket)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-served; err != nil {
		t.Errorf("the runtime was stopped and returned %v", err)
	}
}

func TestServeReportsRuntimeThatEnds(t *testing.T) {
	failure := errors.New("no disk")
	for want, result := range map[error]error{failure: failure, errRuntimeEnded: nil} {
		_, _, err := serve(t.Context(), runtimeFunc(func(context.Context, string) error { return result }), filepath.Join(t.TempDir(), "cri.sock"))
		if !errors.Is(err, want) {
			t.Errorf("serve() = %v, want %v", err, want)
		}
	}
}
