package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/cmd/weft/doctor"
)

const (
	// limit is how long doctor may take. A run that takes longer does not fail the test, because
	// the machine may be busy with other tests: the last line counts.
	limit = 2 * time.Second
	// attempts is how often doctor is asked for a finding, or for none: daemons start and change
	// rules in their own time.
	attempts = 40
)

var only = flag.String("faults.only", "", "seed only faults whose names have this text")

// TestFaults seeds each fault on a node and has doctor find it.
func TestFaults(t *testing.T) {
	if os.Getenv(inNamespace) != "" {
		testNode(t)
		return
	}
	isolate(t, "TestFaults", "-faults.only="+*only)
}

// testNode is TestFaults in the namespaces of the node.
func testNode(t *testing.T) {
	n := prepare(t, "node.sh")
	if _, _, err := n.await(func(r *doctor.Report) bool { return len(r.Findings) == 0 }); err != nil {
		t.Fatalf("the node before all faults: %v", err)
	}
	tried, found, inTime := 0, 0, 0
	fmt.Println("| fault | check | found | seconds | seconds after it was undone |\n| --- | --- | --- | --- | --- |")
	for _, f := range faults {
		if !strings.Contains(f.name, *only) {
			continue
		}
		tried++
		took, after, err := n.try(f)
		answer := "yes"
		if err != nil {
			answer = "no"
			t.Errorf("%s: %v", f.name, err)
		} else {
			found++
		}
		if max(took, after) <= limit {
			inTime++
		}
		fmt.Printf("| %s | %s | %s | %.2f | %.2f |\n", f.name, f.check, answer, took.Seconds(), after.Seconds())
	}
	fmt.Printf("\n%d of %d faults found with their remedy, and nothing after they were undone; %d of %d within %v\n", found, tried, inTime, tried, limit)
}

// try seeds a fault, has doctor find it, undoes it, and has doctor find nothing.
func (n *node) try(f fault) (took, after time.Duration, err error) {
	if err = n.bash(f.seed); err == nil {
		var r *doctor.Report
		if r, took, err = n.await(func(r *doctor.Report) bool { return f.foundIn(r) }); err != nil {
			err = fmt.Errorf("want %s with %q and %q: %w", f.check, f.found, f.remedy, err)
		} else if len(r.Findings) == 0 {
			err = errors.New("found, and nothing reported")
		}
	}
	err = errors.Join(err, n.bash(f.undo))
	_, after, undone := n.await(func(r *doctor.Report) bool { return len(r.Findings) == 0 })
	if undone != nil {
		err = errors.Join(err, fmt.Errorf("after it was undone: %w", undone))
	}
	return took, after, err
}

// foundIn reports whether a finding names the fault and its remedy.
func (f *fault) foundIn(r *doctor.Report) bool {
	for _, g := range r.Findings {
		if g.Check == f.check && strings.Contains(g.Found, f.found) && strings.Contains(g.Remedy, f.remedy) && g.Severity != doctor.Unknown {
			return true
		}
	}
	return false
}

// await examines the node until the report is good. It returns the time that doctor took for it.
func (n *node) await(good func(r *doctor.Report) bool) (r *doctor.Report, took time.Duration, err error) {
	for range attempts {
		start := time.Now()
		if r, err = n.examine(); err != nil {
			return nil, 0, err
		}
		if took = time.Since(start); good(r) {
			return r, took, nil
		}
	}
	return r, took, fmt.Errorf("doctor reports %+v", r.Findings)
}

// examine runs weft doctor, as another user if the fault asks for that.
func (n *node) examine() (*doctor.Report, error) {
	argv := []string{n.path("weft"), "doctor", "-o", "json", "--socket", n.path("run/weft.sock"), "--state-dir", n.path("state")}
	if _, err := os.Stat(n.path("stranger")); err == nil {
		argv = append([]string{"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"}, argv...)
	}
	cmd := exec.Command(argv[0], argv[1:]...) //nolint:gosec,noctx // doctor ends by itself
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	r := new(doctor.Report)
	if bad := json.Unmarshal(stdout.Bytes(), r); bad != nil {
		return nil, fmt.Errorf("weft doctor: %w: %s", errors.Join(err, bad), stderr.String())
	}
	return r, nil
}
