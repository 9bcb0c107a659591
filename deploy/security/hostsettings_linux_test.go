package security

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/pkg/oci"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// established is a setting per network namespace. A new namespace has the kernel's value, as after a
// reboot.
const (
	established = "/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established"
	ofKernel    = "432000"
	ofKubeProxy = "86400"
)

// TestInitContainer: the chart's init container sets up connection tracking after each reboot and pod
// start, privileged, without files of the node and without a token.
func TestInitContainer(t *testing.T) {
	isolated(t, func(t *testing.T, weft string) {
		for _, mode := range []string{"split", "single"} {
			spec, _ := rendered(t, values(mode))
			if len(spec.InitContainers) != 1 {
				t.Fatalf("%d init containers", len(spec.InitContainers))
			}
			// The container runtime does not filter a privileged container.
			none := func(_ context.Context, _ oci.Client, _ *containers.Container, s *specs.Spec) error {
				s.Linux.Seccomp = nil
				return nil
			}
			restored(t, func() string {
				return runOnce(t, weft, spec, spec.InitContainers[0], none)
			})
		}
	})
}

// TestUnits: the units do the same before weft starts.
func TestUnits(t *testing.T) {
	isolated(t, func(t *testing.T, weft string) {
		for _, unit := range []string{"weft.service", "weft-services.service"} {
			var commands []string
			for _, line := range unitLines(t, filepath.Join("../systemd", unit), "ExecStartPre") {
				command, ok := strings.CutPrefix(line, "-+")
				if !ok {
					t.Errorf("%s: %s has not the rights for it, or its failure stops weft", unit, line)
				}
				commands = append(commands, strings.ReplaceAll(command, "/usr/local/bin/weft", weft))
			}
			restored(t, func() (all string) {
				for _, c := range commands {
					// As in systemd, a missing or failed command is ignored.
					out, _ := exec.CommandContext(t.Context(), "sh", "-c", c).CombinedOutput() //nolint:gosec // of the unit
					all += string(out)
				}
				return all
			})
		}
	})
}

// restored requires kube-proxy's setting after apply, from the kernel's own value.
func restored(t *testing.T, apply func() string) {
	t.Helper()
	// The file exists with connection tracking, which a rule loads.
	if out, err := exec.CommandContext(t.Context(), "nft", "add table ip t; add chain ip t c { type nat hook output priority 0; }; delete table ip t").CombinedOutput(); err != nil {
		t.Fatalf("nft: %v\n%s", err, out)
	}
	for range 2 {
		must(t, os.WriteFile(established, []byte(ofKernel), 0o600))
		log := apply()
		have, err := os.ReadFile(established)
		if err != nil || strings.TrimSpace(string(have)) != ofKubeProxy {
			t.Errorf("%s is %s (%v), want %s\n%s", established, have, err, ofKubeProxy, log)
		}
	}
}
