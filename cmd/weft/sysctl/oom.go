package sysctl

import "path/filepath"

// SetOOMScore sets oom_score_adj of this process, from -1000 (the kernel never kills it) to 1000.
// Lowering it requires CAP_SYS_RESOURCE. root is the root of the file system.
func SetOOMScore(root string, score int) error {
	path := filepath.Join(root, "proc/self/oom_score_adj")
	have, err := readInt(path)
	if err == nil && have == score {
		return nil
	}
	return writeInt(path, score)
}
