package statedir

import (
	"os"
	"path/filepath"
	"strings"
)

const (
	// runningFile is there while a process uses the directory. It has the boot_id of the kernel.
	runningFile = "running"
	// bootID is another one after each boot.
	bootID = "/proc/sys/kernel/random/boot_id"
)

// begin notes that this process uses the directory, and reports whether the last one that did
// was killed: it left its note, and the machine has not been started anew since. Without the
// note, which a directory that cannot be written does not get, the answer is false.
func (d *Dir) begin() (killed bool) {
	boot, err := os.ReadFile(bootID)
	if err != nil {
		return false
	}
	path := filepath.Join(d.path, runningFile)
	left, err := os.ReadFile(path) //nolint:gosec // of the operator's directory
	killed = err == nil && strings.TrimSpace(string(left)) == strings.TrimSpace(string(boot))
	if err := os.WriteFile(path, boot, 0o600); err != nil {
		d.log.Debug("cannot note that this process runs: its end may not be noticed", "path", path, "error", err)
	}
	return killed
}
