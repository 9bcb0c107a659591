package security

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/contrib/seccomp"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/pkg/oci"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// TestRefused: each profile refuses calls that weft does not make.
func TestRefused(t *testing.T) {
	isolated(t, func(t *testing.T, _ string) {
		program := filepath.Join(t.TempDir(), "probe")
		build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./testdata/probe")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build: %v\n%s", err, out)
		}
		for _, k := range Kinds() {
			spec := corev1.Container{Name: string(k), SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(bool)}}
			out := runOnce(t, program, &corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{}}, spec, func(ctx context.Context, client oci.Client, c *containers.Container, s *specs.Spec) error {
				if err := seccomp.WithProfile(filepath.Join("seccomp", string(k)+".json"))(ctx, client, c, s); err != nil {
					return err
				}
				return visible(s.Linux.Seccomp)
			})
			lines := strings.Split(strings.TrimSpace(out), "\n")
			if len(lines) < 18 {
				t.Errorf("%s: %d calls were tried:\n%s", k, len(lines), out)
			}
			for _, line := range lines {
				want := fmt.Sprintf(": %d", refusal)
				if strings.HasPrefix(line, "clone3") {
					want = fmt.Sprintf(": %d", int(unix.ENOSYS))
				}
				if !strings.HasSuffix(line, want) {
					t.Errorf("%s: %s, want%s", k, line, want)
				}
			}
		}
	})
}

// runOnce runs a program in a container to its end, and returns its output.
func runOnce(t *testing.T, program string, pod *corev1.PodSpec, spec corev1.Container, confine oci.SpecOpts) string {
	t.Helper()
	c := newContainer(t, t.TempDir(), program, pod, spec, nil, confine)
	defer c.remove()
	c.start(t)
	c.ended(t)
	return c.log()
}
