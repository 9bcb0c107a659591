package security

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/containerd/containerd/v2/contrib/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var write = flag.Bool("write", false, "write the files anew")

// TestFiles compares the files with the package's result.
func TestFiles(t *testing.T) {
	files, err := Files()
	must(t, err)
	for path, text := range files {
		if *write {
			must(t, os.MkdirAll(filepath.Dir(path), 0o755))  //nolint:gosec // of a repository
			must(t, os.WriteFile(path, []byte(text), 0o644)) //nolint:gosec // of a repository
		}
		if have, err := os.ReadFile(path); err != nil || string(have) != text {
			t.Errorf("%s is not what the package makes (%v): run make generate", path, err)
		}
	}
}

// TestSmaller: a profile allows less than a third of containerd's default for the same container.
func TestSmaller(t *testing.T) {
	for _, k := range Kinds() {
		var capabilities []string
		if k.programsKernel() {
			capabilities = []string{"CAP_NET_ADMIN"}
		}
		byDefault := make(map[string]bool)
		for _, s := range seccomp.DefaultProfile(&specs.Spec{Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{Bounding: capabilities}}}).Syscalls {
			if s.Action == specs.ActAllow {
				for _, n := range s.Names {
					byDefault[n] = true
				}
			}
		}
		calls, _ := k.Calls()
		for _, n := range calls {
			if !byDefault[n] {
				t.Errorf("%s: containerd's default does not allow %s", k, n)
			}
		}
		if 3*len(calls) > len(byDefault) {
			t.Errorf("%s: %d system calls of %d", k, len(calls), len(byDefault))
		}
		if slices.Contains(calls, "fork") || slices.Contains(calls, "vfork") {
			t.Errorf("%s may create processes", k)
		}
		t.Logf("%s: %d system calls allowed, %d by containerd's default", k, len(calls), len(byDefault))
	}
}
