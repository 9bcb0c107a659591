package takeover

import (
	"os"
	"path/filepath"
	"strings"
)

// sameNamespace returns the visible processes of a name in this network namespace, for a
// notice.
func sameNamespace(proc, name string) string {
	own, err := os.Readlink(filepath.Join(proc, "self/ns/net"))
	if err != nil {
		return ""
	}
	all, err := filepath.Glob(filepath.Join(proc, "[0-9]*", "comm"))
	if err != nil {
		return ""
	}
	var pids []string
	for _, path := range all {
		dir := filepath.Dir(path)
		comm, err := os.ReadFile(path)
		if err != nil || strings.TrimSpace(string(comm)) != name {
			continue
		}
		if ns, err := os.Readlink(filepath.Join(dir, "ns/net")); err == nil && ns == own {
			pids = append(pids, filepath.Base(dir))
		}
	}
	return strings.Join(pids, ", ")
}
