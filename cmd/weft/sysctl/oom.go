package sysctl

import "path/filepath"

// SetOOMScore sets the process's oom_score_adj, from -1000 (never killed by the kernel) to 1000.
// Lowering it requires CAP_SYS_RESOURCE. root is the root of the file system.
func SetOOMScore(root string, score int) error {
	path := filepath.Join(root, "proc/self/oom_score_adj")
	have, err := readInt(path)
	if err == nil && have == score {
		return nil
	}
	return writeInt(path, score)
}
