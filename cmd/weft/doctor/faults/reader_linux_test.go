package faults

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// maxCommands is how many commands a reader may need.
const maxCommands = 3

// TestReader seeds ten faults on a cluster, one after the other: with each a connection fails that
// passed before. It enters the commands that the documentation names, finds the cause in what they
// print, mends it as they say, and the connection passes again. If WEFT_PAGES names a directory, the transcript is
// ten-faults.md there.
func TestReader(t *testing.T) {
	if os.Getenv(inNamespace) != "" {
		testCluster(t)
		return
	}
	isolate(t, "TestReader", "-faults.only="+*only)
}

// testCluster is TestReader in the namespaces of the cluster.
func testCluster(t *testing.T) {
	n := prepare(t, "cluster.sh")
	for _, machine := range []string{"node-1", "node-2"} {
		if err := n.bash("await 'nothing found' on " + machine + " weft doctor"); err != nil {
			t.Fatalf("before all faults: %v", err)
		}
	}
	tr := newTranscript()
	for i := range symptoms {
		s := &symptoms[i]
		if !strings.Contains(s.name, *only) {
			continue
		}
		if err := n.diagnose(s, tr); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		fmt.Printf("%s: found with %d commands\n", s.name, len(s.ask))
	}
	if dir := os.Getenv("WEFT_PAGES"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, "ten-faults.md"), tr.bytes(), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
	}
}

// diagnose seeds a fault, asks for its cause, and mends it.
func (n *node) diagnose(s *symptom, tr *transcript) error {
	if len(s.ask) > maxCommands {
		return fmt.Errorf("%d commands, want at most %d", len(s.ask), maxCommands)
	}
	probe := command{s.client, "curl -sS --max-time 2 " + s.url}
	passes := fmt.Sprintf("await '%s' on %s", s.answer, probe.on+" "+probe.line)
	if err := n.bash(passes); err != nil {
		return fmt.Errorf("before: %w", err)
	}
	if err := n.bash(s.seed + "\nfails " + s.client + " " + s.url); err != nil {
		return fmt.Errorf("with the fault: %w", err)
	}
	tr.begin(s)
	failed, err := n.enter(probe)
	if err == nil {
		return fmt.Errorf("%s does not fail: %s", probe, failed)
	}
	tr.command(probe, failed)
	for i, c := range s.ask {
		// The reader goes on if there is no cause; what a command returns says how bad it is.
		out, _ := n.enter(c)
		tr.command(c, out)
		if last := i == len(s.ask)-1; last && !strings.Contains(out, s.cause) {
			return fmt.Errorf("%s does not name the cause %q: %s", c, s.cause, out)
		}
	}
	tr.conclude(s)
	if s.mend.line != "" {
		out, err := n.enter(s.mend)
		if err != nil {
			return fmt.Errorf("%s: %w: %s", s.mend, err, out)
		}
		tr.command(s.mend, out)
	}
	if err := n.bash(s.apply); err != nil {
		return fmt.Errorf("mend it: %w", err)
	}
	passed, err := n.passed(probe, s.answer)
	if err != nil {
		return fmt.Errorf("after it was mended: %w", err)
	}
	tr.command(probe, passed)
	tr.end()
	return n.bash(s.restore + "\n" + passes)
}

// passed enters a command until it prints an answer: what mends a fault takes its own time.
func (n *node) passed(c command, answer string) (out string, err error) {
	for range attempts {
		if out, err = n.enter(c); err == nil && strings.Contains(out, answer) {
			return out, nil
		}
	}
	return out, fmt.Errorf("%s: want %q: %s", c, answer, out)
}

// enter runs a command on its machine, and returns what it prints.
func (n *node) enter(c command) (string, error) {
	cmd := exec.Command("timeout", patience, "bash", "-c", n.functions+"\non "+c.on+" bash -c "+quote(c.line)) //nolint:gosec,noctx // lines of this package
	cmd.Env = append(os.Environ(), "W="+n.dir)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// quote returns a word of the shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
