package security

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/containerd/containerd/v2/contrib/seccomp"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/pkg/oci"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// inNamespace is weft's path, set in the process with its own network namespace.
const inNamespace = "WEFT_SECURITY_NAMESPACE"

var programDir = filepath.Join(os.TempDir(), fmt.Sprintf("weft-security-%d", os.Getpid())) //nolint:gochecknoglobals // a constant

// buildWeft builds weft once, as in the image.
var buildWeft = sync.OnceValues(func() (string, error) { //nolint:gochecknoglobals // its purpose
	program := filepath.Join(programDir, "weft")
	build := exec.Command("go", "build", "-trimpath", "-tags", "grpcnotrace", "-o", program, "./cmd/weft") //nolint:gosec,noctx // ours
	build.Dir, build.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build weft: %w\n%s", err, out)
	}
	return program, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if os.Getenv(inNamespace) == "" {
		_ = os.RemoveAll(programDir)
	}
	os.Exit(code)
}

// isolated runs a test in its own network namespace, with a node's addresses.
func isolated(t *testing.T, f func(t *testing.T, program string)) {
	t.Helper()
	if os.Getenv(inNamespace) == "" {
		if os.Geteuid() != 0 {
			if os.Getenv("CI") == "true" {
				t.Fatal("this test needs root")
			}
			t.Skip("this test needs root")
		}
		program, err := buildWeft()
		must(t, err)
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", append(os.Args[1:], "-test.run=^"+t.Name()+"$", "-test.v")...) //nolint:gosec // itself
		cmd.Env = append(os.Environ(), inNamespace+"="+program)
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		must(t, err)
		return
	}
	for _, args := range [][]string{
		{"link", "set", "lo", "up"}, {"link", "add", "eth0", "type", "veth", "peer", "name", "eth1"}, {"link", "set", "eth1", "up"}, {"link", "set", "eth0", "up"},
		{"address", "add", "192.0.2.1/24", "dev", "eth0"}, {"address", "add", first + "/32", "dev", "lo"}, {"address", "add", second + "/32", "dev", "lo"},
		{"route", "add", "default", "via", "192.0.2.2"},
	} {
		if out, err := exec.CommandContext(t.Context(), "ip", args...).CombinedOutput(); err != nil { //nolint:gosec // the list above
			t.Fatalf("ip %v: %v\n%s", args, err, out)
		}
	}
	serve(t, first)
	serve(t, second)
	f(t, os.Getenv(inNamespace))
}

// TestSplit: the aggregator and the frontends under weft's own profiles.
func TestSplit(t *testing.T) {
	isolated(t, func(t *testing.T, weft string) { ownProfiles(t, weft, "split") })
}

// TestSingle: weft run under weft's own profile.
func TestSingle(t *testing.T) {
	isolated(t, func(t *testing.T, weft string) { ownProfiles(t, weft, "single") })
}

// ownProfiles fails for a refused call, and for an allowed call that weft does not make.
func ownProfiles(t *testing.T, weft, mode string) {
	for name, r := range lived(t, weft, mode) {
		used := slices.Sorted(maps.Keys(r.calls))
		allowed, rare := Kind(name).Calls()
		for _, n := range used {
			if !slices.Contains(allowed, n) {
				t.Errorf("container %s makes the call %s, which is not in calls.go: %s", name, n, r.calls[n])
			}
		}
		kept := 0
		for _, n := range allowed {
			switch {
			case r.calls[n] != "":
			case rare[n] == "":
				t.Errorf("container %s never makes the call %s: remove it from calls.go, or say when it is made", name, n)
			default:
				kept++
			}
		}
		for family := range r.families {
			if socketFamilies()[family] == 0 {
				t.Errorf("container %s has sockets of %s, which socketFamilies does not name", name, family)
			}
		}
		if len(r.families) != len(socketFamilies()) {
			t.Errorf("container %s has sockets of %v alone", name, slices.Sorted(maps.Keys(r.families)))
		}
		t.Logf("container %s: %d system calls made, %d allowed, of these %d not seen in this run", name, len(used), len(allowed), kept)
		checkFiles(t, Kind(name), r)
	}
}

// lived returns the containers' records of a story under weft's own profiles. A refused call fails the test.
func lived(t *testing.T, weft, mode string) map[string]*record {
	t.Helper()
	trace := t.TempDir()
	p := newPod(t, weft, trace, values(mode), func(name string) oci.SpecOpts {
		return func(ctx context.Context, client oci.Client, c *containers.Container, s *specs.Spec) error {
			if err := seccomp.WithProfile(filepath.Join("seccomp", name+".json"))(ctx, client, c, s); err != nil {
				return err
			}
			return visible(s.Linux.Seccomp)
		}
	})
	story(t, p)
	records := make(map[string]*record)
	for name := range p.containers {
		r := newRecord()
		dirs, err := filepath.Glob(filepath.Join(trace, name+"-*"))
		if err != nil || len(dirs) < 2 {
			t.Fatalf("container %s: %d processes were traced (%v)", name, len(dirs), err)
		}
		for _, d := range dirs {
			if err := r.add(d); err != nil {
				t.Error(err)
			}
		}
		for _, line := range r.refused {
			t.Errorf("container %s: the filter refuses %s", name, line)
		}
		records[name] = r
	}
	return records
}
