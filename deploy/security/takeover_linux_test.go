package security

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/contrib/seccomp"
	"github.com/containerd/containerd/v2/pkg/oci"
)

var update = flag.Bool("update", false, "write the table of TestTakeover into deploy/docs/operating.md")

// operating has the table of TestTakeover between two lines.
const (
	operating     = "../docs/operating.md"
	takeoverBegin = "<!-- takeover: begin -->\n"
	takeoverEnd   = "<!-- takeover: end -->\n"
)

// attempt is an action of a taken-over process of weft. The command is for the container NAME, and PID
// is a process of another container.
type attempt struct{ what, command string }

// In order: the last ends the aggregator.
func attempts(revision string) []attempt {
	return []attempt{
		{"publish a fragment of its own", "/weft apply -f /run/weft/own-NAME.nft"},
		{"publish rules in a table of another publisher", "/weft apply -f /run/weft/team.nft"},
		{"read the fragments of others", "/weft get team-a/team"},
		{"write a fragment of another publisher", "/weft apply -f /run/weft/team.nft --publisher team-a"},
		{"undo a commit of another publisher", "/weft undo --force " + revision},
		{"list and delete connection tracking entries through the aggregator", "/takeover flows"},
		{"list and delete connection tracking entries in the kernel", "/takeover conntrack"},
		{"write nftables in the kernel", "/takeover nft"},
		{"read an API token", "/takeover read /var/run/secrets/kubernetes.io/serviceaccount/token"},
		{"write the state directory", "/takeover write /var/lib/weft/takeover"},
		{"replace the socket of the aggregator", "/takeover write /run/weft/takeover"},
		{"send signals to the other processes", "/takeover signal PID"},
		{"remove all tables", "/takeover cleanup"},
	}
}

// TestTakeover tries the possible actions of each split-mode process in its container, and compares the
// document's table.
func TestTakeover(t *testing.T) {
	isolated(t, func(t *testing.T, weft string) {
		program := filepath.Join(t.TempDir(), "takeover")
		build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/weft/attack/testdata/takeover") //nolint:gosec // ours
		build.Dir, build.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build: %v\n%s", err, out)
		}
		p := newPod(t, weft, "", values("split"), func(string) oci.SpecOpts { return seccomp.WithDefaultProfile() })
		p.api.Set(objects(t)...)
		p.api.Set(endpoints(first))
		names := []string{"aggregator", "services", "policy"}
		for _, name := range names {
			must(t, os.Link(program, filepath.Join(p.containers[name].dir, "rootfs", "takeover")))
		}
		p.start(t)
		p.reaches(t, first)
		for name, table := range map[string]string{"own-aggregator": "own", "own-services": "weft", "own-policy": "weft-policy", "team": "team-a"} {
			put(t, p.volumes["run"], name+".nft", "table ip "+table+" {\n chain takeover { accept; }\n}\n")
		}
		last := p.containers["aggregator"]
		last.exec(t, nil, "apply", "-f", "/run/weft/team.nft", "--publisher", "team-a")
		revision := regexp.MustCompile(`(?m)^(\d+).*team-a`).FindStringSubmatch(last.exec(t, nil, "history"))[1]
		table := "| if it were taken over, it could | " + strings.Join(names, " | ") + " |\n| --- | --- | --- | --- |\n"
		cells := make(map[attempt]map[string]string)
		for _, name := range []string{"services", "policy", "aggregator"} {
			for _, a := range attempts(revision) {
				if cells[a] == nil {
					cells[a] = make(map[string]string)
				}
				cells[a][name] = p.try(t, name, a.command)
			}
		}
		last.ended(t)
		for _, a := range attempts(revision) {
			table += "| " + a.what
			for _, name := range names {
				table += " | " + cells[a][name]
			}
			table += " |\n"
		}
		documented(t, table)
	})
}

func (p *pod) try(t *testing.T, name, command string) string {
	t.Helper()
	other := p.containers[map[string]string{"services": "policy", "policy": "services", "aggregator": "services"}[name]]
	args := append([]string{"exec", p.containers[name].id}, strings.Fields(strings.NewReplacer("NAME", name, "PID", other.pid(t)).Replace(command))...)
	out, err := p.containers[name].command(t.Context(), t, args...).CombinedOutput()
	t.Logf("%s: %s: %v\n%s", name, command, err, out)
	var exit *exec.ExitError
	switch {
	case err == nil || strings.Contains(command, "cleanup") && errors.As(err, &exit) && exit.ExitCode() == 137:
		// weft is the first process of the container, so its end may kill the command.
		return "yes"
	case !errors.As(err, &exit):
		t.Fatal(err)
	}
	for _, reason := range []struct{ text, means string }{
		{"may not", "no: the aggregator refuses it"}, {"no revision in the history", "no: the aggregator does not show it"},
		{"CAP_NET_ADMIN", "no: the kernel refuses it"}, {"operation not permitted", "no: the kernel refuses it"},
		{"read-only file system", "no: it is mounted read-only"}, {"no such file", "no: it is not there"}, {"no such process", "no: it does not see them"},
	} {
		if strings.Contains(string(out), reason.text) {
			return reason.means
		}
	}
	t.Errorf("%s: %s: %s", name, command, out)
	return fmt.Sprintf("no: %s", out)
}

// documented compares the table of the document, or writes it.
func documented(t *testing.T, table string) {
	t.Helper()
	text, err := os.ReadFile(operating)
	must(t, err)
	before, rest, ok := strings.Cut(string(text), takeoverBegin)
	have, after, ok2 := strings.Cut(rest, takeoverEnd)
	switch {
	case !ok || !ok2:
		t.Fatalf("%s has no table between %q and %q", operating, takeoverBegin, takeoverEnd)
	case *update && !t.Failed():
		must(t, os.WriteFile(operating, []byte(before+takeoverBegin+table+takeoverEnd+after), 0o644)) //nolint:gosec // of a repository
	case have != table:
		t.Errorf("%s has another table: run go test -run TestTakeover . -args -update in deploy/security. Want\n%s", operating, table)
	}
}
