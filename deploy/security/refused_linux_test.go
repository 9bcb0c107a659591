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
			out := runOnce(t, program, corev1.Container{Name: string(k)}, "", func(ctx context.Context, client oci.Client, c *containers.Container, s *specs.Spec) error {
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

// TestRecorder: a call missing in a profile is reported; the other tests rely on this.
func TestRecorder(t *testing.T) {
	isolated(t, func(t *testing.T, weft string) {
		trace := t.TempDir()
		runOnce(t, weft, corev1.Container{Name: "weft", Args: []string{"version"}}, trace, func(_ context.Context, _ oci.Client, _ *containers.Container, s *specs.Spec) error {
			p := Seccomp(Single)
			for i := range p.Syscalls[0].Names {
				if p.Syscalls[0].Names[i] == "sched_getaffinity" {
					p.Syscalls[0].Names[i] = "sched_setaffinity"
				}
			}
			s.Linux.Seccomp = &p
			return visible(&p)
		})
		r := newRecord()
		if err := r.add(filepath.Join(trace, "weft-001")); err != nil {
			t.Fatal(err)
		}
		if len(r.refused) == 0 || !strings.HasPrefix(r.refused[0], "sched_getaffinity(") {
			t.Errorf("refused: %q, want sched_getaffinity", r.refused)
		}
	})
}

// runOnce runs a program in a container to its end, and returns its output.
func runOnce(t *testing.T, program string, spec corev1.Container, trace string, confine oci.SpecOpts) string {
	t.Helper()
	no := false
	spec.SecurityContext = &corev1.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{}}
	c, err := newContainer(t.TempDir(), program, &corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{}}, spec, nil, confine)
	if err != nil {
		t.Fatal(err)
	}
	c.runtime, c.trace = *runtimeFlag, trace
	defer c.remove()
	c.start(t)
	c.ended(t)
	return c.log()
}
