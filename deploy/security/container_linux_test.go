package security

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/pkg/oci"
	"github.com/opencontainers/runtime-spec/specs-go"
	corev1 "k8s.io/api/core/v1"
)

// container is a container of a pod, as containerd describes it to the runtime.
type container struct {
	id, dir string
	spec    corev1.Container
	// trace is the directory of strace's files, or empty.
	trace string
	runs  int
	// proc is the runtime that waits for the container.
	proc *exec.Cmd
	done chan struct{}
}

// newContainer writes a bundle in dir, with the configuration of containerd's own functions, and weft
// as the only file.
func newContainer(
	t *testing.T, dir, program string, pod *corev1.PodSpec, c corev1.Container, volumes map[string]string, confine oci.SpecOpts,
) *container {
	t.Helper()
	out := &container{id: fmt.Sprintf("weft-security-%d-%s", os.Getpid(), c.Name), dir: filepath.Join(dir, c.Name), spec: c}
	rootfs := filepath.Join(out.dir, "rootfs")
	must(t, os.MkdirAll(rootfs, 0o755)) //nolint:gosec // the root of a container
	must(t, os.Link(program, filepath.Join(rootfs, "weft")))
	opts := []oci.SpecOpts{
		oci.WithRootFSPath(rootfs), oci.WithProcessCwd("/"), oci.WithHostNamespace(specs.NetworkNamespace), oci.WithCgroup("/" + out.id),
		oci.WithProcessArgs(append([]string{"/weft"}, expand(c.Args, c.Env)...)...), oci.WithEnv(environment(c.Env)),
		oci.WithMounts(mounts(c, volumes)), oci.WithCapabilities(capabilities(c)),
	}
	s := c.SecurityContext
	if s.ReadOnlyRootFilesystem != nil && *s.ReadOnlyRootFilesystem {
		opts = append(opts, oci.WithRootFSReadonly())
	}
	if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation {
		opts = append(opts, oci.WithNewPrivileges)
	}
	if s.Privileged != nil && *s.Privileged {
		opts = append(opts, oci.WithAllCurrentCapabilities, oci.WithMaskedPaths(nil), oci.WithReadonlyPaths(nil), oci.WithWriteableSysfs)
	}
	if s.RunAsUser != nil {
		opts = append(opts, oci.WithUIDGID(uint32(*s.RunAsUser), uint32(*s.RunAsGroup))) //nolint:gosec // ids
	}
	for _, g := range pod.SecurityContext.SupplementalGroups {
		opts = append(opts, oci.WithAppendAdditionalGroups(fmt.Sprint(g)))
	}
	// Last, because it depends on the capabilities.
	opts = append(opts, confine)
	spec, err := oci.GenerateSpecWithPlatform(namespaces.WithNamespace(context.Background(), "k8s.io"), nil, "linux/amd64", &containers.Container{ID: out.id}, opts...)
	must(t, err)
	text, err := json.MarshalIndent(spec, "", "  ")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(out.dir, "config.json"), text, 0o600))
	return out
}

// expand puts the environment into arguments, as the kubelet does.
func expand(args []string, env []corev1.EnvVar) (out []string) {
	for _, a := range args {
		for _, e := range env {
			a = strings.ReplaceAll(a, "$("+e.Name+")", value(e))
		}
		out = append(out, a)
	}
	return out
}

// environment returns a container's variables, as the kubelet sets them.
func environment(env []corev1.EnvVar) (out []string) {
	for _, e := range env {
		out = append(out, e.Name+"="+value(e))
	}
	return out
}

func value(e corev1.EnvVar) string {
	switch e.Name {
	case "NODE_NAME":
		return nodeName
	case "KUBERNETES_SERVICE_HOST":
		return apiHost
	case "KUBERNETES_SERVICE_PORT":
		return apiPort
	}
	return e.Value
}

// volumes maps names of volumes to directories.
func mounts(c corev1.Container, volumes map[string]string) (out []specs.Mount) {
	for _, m := range c.VolumeMounts {
		mode := "rw"
		if m.ReadOnly {
			mode = "ro"
		}
		out = append(out, specs.Mount{Destination: m.MountPath, Type: "bind", Source: volumes[m.Name], Options: []string{"rbind", "rprivate", mode}})
	}
	return out
}

func capabilities(c corev1.Container) []string {
	out := []string{}
	if set := c.SecurityContext.Capabilities; set != nil {
		for _, name := range set.Add {
			out = append(out, "CAP_"+string(name))
		}
	}
	return out
}

func (c *container) untraced(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, *runtimeFlag, append([]string{"--root", filepath.Join(c.dir, "runtime")}, args...)...) //nolint:gosec // of the test
}

// command runs the runtime, under strace if the container is traced.
func (c *container) command(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := c.untraced(ctx, args...)
	if c.trace == "" {
		return cmd
	}
	c.runs++
	dir := filepath.Join(c.trace, fmt.Sprintf("%s-%03d", c.spec.Name, c.runs))
	must(t, os.MkdirAll(dir, 0o700))
	strace := []string{"-f", "-ff", "-qq", "-y", "-s", "256", "--decode-pids=pidns", "-o", filepath.Join(dir, "t")}
	return exec.CommandContext(ctx, "strace", append(strace, cmd.Args...)...) //nolint:gosec // of the test
}

func (c *container) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(c.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(t, err)
	defer log.Close()
	cmd := c.command(context.Background(), t, "run", "--bundle", c.dir, c.id)
	cmd.Stdout, cmd.Stderr = log, log
	must(t, cmd.Start())
	c.proc, c.done = cmd, make(chan struct{})
	go func() { defer close(c.done); _ = cmd.Wait() }()
}

// signal sends a signal to weft, and waits until the container has ended.
func (c *container) signal(t *testing.T, name string) {
	t.Helper()
	out, err := c.untraced(t.Context(), "kill", c.id, name).CombinedOutput()
	if err != nil {
		t.Fatalf("kill container %s: %v: %s", c.spec.Name, err, out)
	}
	c.ended(t)
}

func (c *container) ended(t *testing.T) {
	t.Helper()
	select {
	case <-c.done:
	case <-time.After(patience):
		t.Fatalf("container %s does not end\n%s", c.spec.Name, c.log())
	}
}

func (c *container) remove() {
	if c.proc == nil {
		return
	}
	_ = c.untraced(context.Background(), "delete", "--force", c.id).Run()
	<-c.done
}

// exec runs weft in the container, as kubectl exec does, and returns its output. It accepts the exit
// codes in codes.
func (c *container) exec(t *testing.T, codes []int, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := c.command(ctx, t, append([]string{"exec", c.id, "/weft"}, args...)...).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && slices.Contains(codes, exit.ExitCode()) {
		err = nil
	}
	if err != nil {
		t.Errorf("weft %s in container %s: %v\n%s", strings.Join(args, " "), c.spec.Name, err, out)
	}
	return string(out)
}

// pid is weft's, in the PID namespace of the node.
func (c *container) pid(t *testing.T) string {
	t.Helper()
	out, err := c.untraced(t.Context(), "state", c.id).Output()
	var state struct{ Pid int }
	if err = errors.Join(err, json.Unmarshal(out, &state)); err != nil {
		t.Fatalf("state of container %s: %v", c.spec.Name, err)
	}
	return strconv.Itoa(state.Pid)
}

// log returns the end of weft's log.
func (c *container) log() string {
	text, _ := os.ReadFile(filepath.Join(c.dir, "log"))
	return string(text[max(0, len(text)-6000):])
}
