package nft

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

const top = "../../.."

// daemon is weft in its own namespace.
type daemon struct {
	ns             *nfttest.NS
	binary, socket string
}

// objects are weft's arguments for the objects in testdata.
var objects = []string{"run", "--network-policy", "--manifests", "testdata/objects", "--hostname-override", "node-1", "--cluster-cidr", "10.244.0.0/16,fd00:10:244::/56", "--healthz-bind-address", ""}

func start(t *testing.T, args ...string) *daemon {
	t.Helper()
	d := &daemon{ns: nfttest.New(t), binary: filepath.Join(t.TempDir(), "weft")}
	build := exec.Command("go", "build", "-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", d.binary, "./cmd/weft")
	build.Dir, build.Env = top, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build weft: %v: %s", err, out)
	}
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o700))
	d.socket = filepath.Join(dir, "weft.sock")
	log, err := os.Create(filepath.Join(dir, "log"))
	must(t, err)
	defer log.Close()
	cmd := exec.Command(d.binary, append(args, "--socket", d.socket, "--state-dir", filepath.Join(dir, "state"), "--metrics-bind-address", "")...)
	cmd.Stdout, cmd.Stderr = log, log
	must(t, d.ns.Do(cmd.Start))
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(time.Minute); ; {
		status, err := d.run("", "get", "status", "--ready")
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("weft is not ready: %v: %s\n%s", err, status, text)
		}
	}
	return d
}

func (d *daemon) run(stdin string, args ...string) (string, error) {
	return d.ns.Output(stdin, d.binary, append(args, "--socket", d.socket)...)
}

// The places of errors: a line of a file, and a chain of a corpus.
var (
	atLine  = regexp.MustCompile(`(?:^|\s)-:(\d+):\d+: `)
	atChain = regexp.MustCompile(`nfttest-rule-(\d+)`)
)

// apply publishes a corpus in a separate table, and returns the number of accepted rules.
func (d *daemon) apply(t *testing.T, c nfttest.Corpus, table string) int {
	t.Helper()
	skip := map[int]bool{}
	for {
		script, lines := c.Script(skip)
		script = strings.Replace(script, "table "+c.Family+" t {", "table "+c.Family+" "+table+" {", 1)
		out, err := d.ns.Output(script, d.binary, "check", "-f", "-")
		at, index := atLine, func(n int) int { return lines[n] }
		if err == nil {
			if out, err = d.run(script, "apply", "--name", table, "-f", "-"); err == nil {
				return len(c.Rules) - len(skip)
			}
			at, index = atChain, func(n int) int { return n }
		}
		before := len(skip)
		for _, m := range at.FindAllStringSubmatch(out+err.Error(), -1) {
			n, _ := strconv.Atoi(m[1])
			skip[index(n)] = true
		}
		if len(skip) == before {
			t.Fatalf("apply %s: %v: %s", c.Name, err, out)
		}
	}
}

// corpora publishes all corpora in their first family, except for optional kernel features.
func (d *daemon) corpora(t *testing.T) (tables []string, rules int) {
	t.Helper()
	file := ""
	for i, c := range nfttest.ReadCorpora(t, top+"/nft/compile/testdata/corpus") {
		name, _, _ := strings.Cut(c.Name, "/")
		if name == file || c.Unchecked {
			continue
		}
		file = name
		table := fmt.Sprintf("corpus-%d", i)
		n := d.apply(t, c, table)
		t.Logf("%s: %s: %d of %d rules", table, c.Name, n, len(c.Rules))
		tables, rules = append(tables, c.Family+" "+table), rules+n
	}
	return tables, rules
}
