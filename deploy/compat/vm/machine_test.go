package vm

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/deploy/compat/debian"
)

// kept between runs
const cache = "../../../.cache/compat"

func newKernel(t *testing.T) Kernel {
	t.Helper()
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		t.Skip(err)
	}
	suite, err := debian.Open(cache, "bookworm")
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(cache, "bookworm/kernel")
	if _, err := suite.Unpack(root, debian.Kernel, "linux-image-cloud-amd64"); err != nil {
		t.Fatal(err)
	}
	k, err := FindKernel(root)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestRun(t *testing.T) {
	k := newKernel(t)
	files, err := Programs("nft")
	if err != nil {
		t.Fatal(err)
	}
	files["/data"] = "."
	out, status, err := Machine{Kernel: k, Files: files}.Run(t.Context(),
		"uname -r; nft add table ip x; nft list ruleset; ls /data/machine_test.go; date -s 2030-01-01 >/dev/null; date +%Y; exit 3")
	want := k.Release + "\ntable ip x {\n}\n/data/machine_test.go\n2030\n"
	if err != nil || status != 3 || out != want {
		t.Errorf("Run: output %q, status %d, error %v; want %q and 3", out, status, err, want)
	}
}

func TestRunReportsPanic(t *testing.T) {
	k := newKernel(t)
	out, _, err := Machine{Kernel: k}.Run(t.Context(), "echo before; echo c >/proc/sysrq-trigger; echo after")
	if err == nil || !strings.Contains(err.Error(), "Kernel panic") || out != "before\n" {
		t.Errorf("Run: output %q, error %v; want the console's panic", out, err)
	}
}
