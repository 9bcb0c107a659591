//go:build linux && amd64

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// asProgram is set in the child process with the shifted clock.
const asProgram = "CLOCKSHIFT_TEST"

// TestClock sets a program's wall clock back by a day: the monotonic clock does not follow, and
// clockshift exits with the program's code.
func TestClock(t *testing.T) {
	if file := os.Getenv(asProgram); file != "" {
		before := time.Now()
		if err := os.WriteFile(file, []byte("-24h"), 0o600); err != nil {
			t.Fatal(err)
		}
		after := time.Now()
		// Round removes the reading of the monotonic clock.
		wall, uptime := after.Round(0).Sub(before.Round(0)), after.Sub(before)
		if wall > -23*time.Hour || wall < -25*time.Hour || uptime < 0 || uptime > time.Hour {
			t.Errorf("the wall clock went by %v and the monotonic clock by %v", wall, uptime)
			os.Exit(1)
		}
		os.Exit(7)
	}
	dir := t.TempDir()
	shift, file := filepath.Join(dir, "clockshift"), filepath.Join(dir, "difference")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", shift, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), shift, file, os.Args[0], "-test.run=^TestClock$")
	cmd.Env = append(os.Environ(), asProgram+"="+file)
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 7 {
		t.Errorf("exit code %d (%v)\n%s", code, err, out)
	}
}
