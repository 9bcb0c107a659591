package nft

import (
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/deploy/compat/debian"
)

// kept between runs
const cache = "../../../.cache/compat"

var built = flag.String("nft.built", "", "a directory with programs that the script build made, in subdirectories named after their versions")

// suites have versions from 1.0.2 on; the machine's own comes first.
var suites = []string{"trixie", "sid"}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// version is an nft program.
type version struct {
	// name is its own text, source its origin.
	name, source string
	// program and args begin its command line.
	program string
	args    []string
}

// the machine's own version first
func versions(t *testing.T) []version {
	t.Helper()
	own, err := exec.LookPath("nft")
	must(t, err)
	all := []version{{source: "this machine", program: own}}
	for _, name := range suites {
		suite, err := debian.Open(cache, name)
		must(t, err)
		root, err := filepath.Abs(filepath.Join(cache, name, "nft"))
		must(t, err)
		packaged, err := suite.Unpack(root, nil, "nftables")
		must(t, err)
		all = append(all, program(t, root, "Debian "+name+", "+packaged))
	}
	if *built != "" {
		programs, err := filepath.Glob(filepath.Join(*built, "*", "nft"))
		if err != nil || len(programs) == 0 {
			t.Fatalf("no */nft in %s: %v", *built, err)
		}
		for _, p := range programs {
			all = append(all, version{source: "built from its sources", program: p})
		}
	}
	for i := range all {
		out, err := all[i].output("--version")
		must(t, err)
		fields := strings.Fields(out)
		if len(fields) < 2 {
			t.Fatalf("version of %s: %q", all[i].source, out)
		}
		all[i].name = strings.TrimPrefix(fields[1], "v")
	}
	return all
}

// program returns the nft of an unpacked suite. It runs with that suite's libraries and loader.
func program(t *testing.T, root, source string) version {
	t.Helper()
	find := func(patterns ...string) string {
		for _, p := range patterns {
			if found, err := filepath.Glob(filepath.Join(root, p)); err == nil && len(found) > 0 {
				return found[0]
			}
		}
		t.Fatalf("%s has none of %s", root, patterns)
		return ""
	}
	loader := find("lib64/ld-linux-x86-64.so.2", "usr/lib64/ld-linux-x86-64.so.2")
	var libraries []string
	for _, dir := range []string{"lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"} {
		libraries = append(libraries, filepath.Join(root, dir))
	}
	return version{source: source, program: loader, args: []string{"--library-path", strings.Join(libraries, ":"), find("usr/sbin/nft")}}
}

func (v version) output(args ...string) (string, error) {
	out, err := exec.Command(v.program, append(v.args, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("run nft of %s: %w: %s", v.source, err, out)
	}
	return string(out), nil
}
