package statedir

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/weft-proxy/weft/aggregator/store"
)

// runningFile is there while a process uses the directory. It has the identity of the boot.
const runningFile = "running"

// begin notes that this process uses the directory, and reports whether the last one that did
// was killed: it left its note, and the machine has not been started anew since. Without the
// note, which a directory that cannot be written does not get, the answer is false.
func (d *Dir) begin() (killed bool) {
	boot, err := store.BootID()
	if err != nil {
		return false
	}
	path := filepath.Join(d.path, runningFile)
	left, err := os.ReadFile(path) //nolint:gosec // of the operator's directory
	killed = err == nil && strings.TrimSpace(string(left)) == boot
	if err := os.WriteFile(path, []byte(boot+"\n"), 0o600); err != nil {
		d.log.Debug("cannot note that this process runs: its end may not be noticed", "path", path, "error", err)
	}
	return killed
}
