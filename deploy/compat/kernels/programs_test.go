package kernels

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/deploy/compat/vm"
)

// top is the repository; cache keeps packages and programs between runs.
const (
	top   = "../../.."
	cache = top + "/.cache/compat"
)

// program is a test binary, or weft itself.
type program struct {
	// the column of the table
	name string
	// the package's directory, in which it runs
	pkg  string
	args string
	// part of the short form
	short bool
}

// Omitted tests take minutes in emulation, or add no coverage of the kernel.
var programs = []program{
	{"nft/kernel", "nft/kernel", "-test.v -test.skip 'RoundTrip|Hunt|Busy|ManyElements|WatchOverrun|CheckNames|ForeignChangesOfOwn'", true},
	{"conntrack", "conntrack", "-test.v -test.skip 'OnlyStaleIsRead|DeleteMany'", false},
	{"aggregator", "aggregator", "-test.v -test.run '^Test(Kernel(Keeps|Poison|Restart|Foreign|Repairs|ObjectsChange|ObjectMaps|Live)|FlowsOfABackend|FlowsOfNodePorts|TrafficDuring|Names|Families)'", false},
	{"frontends/services", "frontends/services", "-test.v -test.run '^Test(Packets|NodePortAddresses|FlowsFollowBackends|ServiceChanges|WholePath)$'", false},
	{"weft demo", "", "weft demo", true},
}

// data are the directories that tests read.
var data = []string{"nft/kernel/testdata", "nft/compile/testdata/corpus", "deploy/examples/manifests", "frontends/services/testdata"}

// tools are the programs that tests run.
var tools = []string{"nft", "ip", "conntrack", "unshare"}

// build returns the files of a machine that runs the programs.
func build(t *testing.T) map[string]string {
	t.Helper()
	files, err := vm.Programs(tools...)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range data {
		files["/weft/"+d] = filepath.Join(top, d)
	}
	bin, err := filepath.Abs(filepath.Join(cache, "bin"))
	if err != nil {
		t.Fatal(err)
	}
	weft := filepath.Join(bin, "weft")
	goBuild(t, "build", "-o", weft, "./cmd/weft")
	files["/usr/bin/weft"] = weft
	for _, p := range programs {
		if p.pkg == "" || testing.Short() && !p.short {
			continue
		}
		binary := filepath.Join(bin, binaryName(p))
		goBuild(t, "test", "-c", "-o", binary, "./"+p.pkg)
		files["/weft/bin/"+binaryName(p)] = binary
	}
	return files
}

func binaryName(p program) string { return strings.ReplaceAll(p.pkg, "/", "-") + ".test" }

func goBuild(t *testing.T, verb string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", append([]string{verb, "-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w"}, args...)...)
	cmd.Dir = top
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// section begins the output of each program.
const section = "=== PROGRAM "

// On a refused kernel, script has only the refusal.
func script(refused bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "echo '%srefusal'\ntimeout 10 weft aggregator --socket /run/w/w.sock --state-dir /run/w/state 2>&1\n", section)
	for _, p := range programs {
		if refused || testing.Short() && !p.short {
			continue
		}
		command := p.args
		if p.pkg != "" {
			command = fmt.Sprintf("cd /weft/%s && /weft/bin/%s %s", p.pkg, binaryName(p), p.args)
		}
		fmt.Fprintf(&b, "echo '%s%s'\nmkdir -p /weft/%s\n(%s)\necho \"exit $?\"\n", section, p.name, p.pkg, command)
	}
	return b.String()
}
