package sysctl

import "path/filepath"

// SetOOMScore sets oom_score_adj, from -1000 (never killed) to 1000; to lower it requires
// CAP_SYS_RESOURCE.
func SetOOMScore(root string, score int) error {
	path := filepath.Join(root, "proc/self/oom_score_adj")
	have, err := readInt(path)
	if err == nil && have == score {
		return nil
	}
	return writeInt(path, score)
}
