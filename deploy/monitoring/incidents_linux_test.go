package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestIncidents has weft suffer one fault after the other, each on its own node, and reads an
// operator's sources. Every fault is reported, and after its end weft recovers without a repair.
func TestIncidents(t *testing.T) {
	if name := os.Getenv(inNamespace); name != "" {
		for n := range incidents {
			if incidents[n].name == name {
				runIncident(t, &incidents[n])
			}
		}
		return
	}
	needRoot(t)
	programs := t.TempDir()
	// Also for a frontend of another user.
	must(t, "", "chmod", "755", programs, filepath.Dir(programs))
	for name, pkg := range map[string]string{"weft": "./cmd/weft", "standalone": "./frontends/testing/apitest/standalone"} {
		must(t, "../..", "go", "build", "-o", filepath.Join(programs, name), pkg)
	}
	must(t, "", "go", "build", "-o", filepath.Join(programs, "clockshift"), "./clockshift")
	rows := make([]string, len(incidents))
	t.Run("all", func(t *testing.T) {
		for n := range incidents {
			i := &incidents[n]
			t.Run(i.name, func(t *testing.T) {
				// They mostly wait.
				t.Parallel()
				report := filepath.Join(t.TempDir(), "report")
				// The incident has its own rules, ports and mounts.
				cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestIncidents$", "-test.v")
				cmd.Env = append(os.Environ(), inNamespace+"="+i.name, "WEFT_MONITORING_PROGRAMS="+programs, "WEFT_MONITORING_REPORT="+report)
				cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				row, err := os.ReadFile(report) //nolint:gosec // of the test
				ok(t, err)
				t.Log(string(row))
				rows[n] = string(row)
			})
		}
	})
	dir := os.Getenv("WEFT_PAGES")
	if dir == "" || t.Failed() {
		return
	}
	const head = `# Incidents

What weft reports of faults, and where. TestIncidents makes each on a node of its own and looks until all of this is there; then it
removes the cause, and waits until nothing is reported any more and both IP families are in force. Nothing else is done: what ends is started again, as the kubelet
does. While the fault lasts, changes of endpoints reach the kernel, where the API server and weft are there.

* Health is a line of ` + "`/readyz?verbose`" + `, which ` + "`weft get status`" + ` and the metric ` + "`weft_degraded`" + ` have too; where another program has its port, that of the port for metrics; where nothing of
  weft runs, what a probe gets.
* The alerts are raised by Prometheus's rule engine on what it has read from weft, without the time for which each must last.
* An Event or a line that comes "afterwards" is not possible before: the API server does not accept Events, or nothing of weft runs.
* The wall clock is set for weft alone (deploy/monitoring/clockshift); a kill for memory is a SIGKILL, as the kernel's is.

| fault | health | alert | Event | log | well again after |
| --- | --- | --- | --- | --- | --- |
`
	put(t, dir, "incidents.md", head+strings.Join(rows, ""))
}
