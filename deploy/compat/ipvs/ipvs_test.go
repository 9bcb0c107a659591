package ipvs

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/deploy/compat/debian"
	"github.com/weft-proxy/weft/deploy/compat/vm"
)

var suites = flag.String("ipvs.suites", "bookworm", "the suites of Debian whose kernels are tested")

// top is the repository; cache keeps packages and programs between runs.
const (
	top   = "../../.."
	cache = top + "/.cache/compat"
)

const script = `
export WEFT_TEST_KUBE_PROXY=/usr/bin/kube-proxy WEFT_TEST_WEFT=/usr/bin/weft
modprobe nf_conntrack
echo 1 >/proc/sys/net/ipv4/ip_forward
/usr/bin/ipvs.test -test.v -test.run '^TestStory$' -test.timeout 20m
`

func TestIPVS(t *testing.T) {
	files, err := vm.Programs("nft", "ip", "ipset", "iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore")
	if err != nil {
		t.Fatal(err)
	}
	// The extensions of iptables, which it loads by name.
	extensions, err := filepath.Glob("/usr/lib/*/xtables")
	if err != nil || len(extensions) != 1 {
		t.Fatalf("find the extensions of iptables: %q, %v", extensions, err)
	}
	files[extensions[0]] = extensions[0]
	bin, err := filepath.Abs(filepath.Join(cache, "bin"))
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]struct {
		dir  string
		args []string
	}{
		"kube-proxy": {"../kubeproxy", []string{"build", "-o", bin + "/kube-proxy", "."}},
		"weft":       {top, []string{"build", "-tags", "grpcnotrace", "-o", bin + "/weft", "./cmd/weft"}},
		"ipvs.test":  {top, []string{"test", "-c", "-o", bin + "/ipvs.test", "./cmd/weft/takeover/ipvs"}},
	} {
		cmd := exec.Command("go", append([]string{b.args[0], "-trimpath", "-ldflags", "-s -w"}, b.args[1:]...)...)
		cmd.Dir = b.dir
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v: %s", name, err, out)
		}
		files["/usr/bin/"+name] = filepath.Join(bin, name)
	}
	for suite := range strings.SplitSeq(*suites, ",") {
		t.Run(suite, func(t *testing.T) {
			s, err := debian.Open(cache, suite)
			if err != nil {
				t.Fatal(err)
			}
			root := filepath.Join(cache, suite, "kernel")
			if _, err := s.Unpack(root, debian.Kernel, "linux-image-cloud-amd64"); err != nil {
				t.Fatal(err)
			}
			k, err := vm.FindKernel(root)
			if err != nil {
				t.Fatal(err)
			}
			out, status, err := vm.Machine{Kernel: k, Files: files, Memory: 2048, Output: t.Output()}.Run(t.Context(), script)
			if err != nil {
				t.Fatal(err)
			}
			if status != 0 || !strings.Contains(out, "--- PASS: TestStory") {
				t.Errorf("kernel %s: exit status %d", k.Release, status)
			}
		})
	}
}
