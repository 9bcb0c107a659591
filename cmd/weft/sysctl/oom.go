package sysctl

import "path/filepath"

// SetOOMScore says how soon the kernel kills this process when memory runs out,
// from -1000, never, to 1000. root is that of the file system. To lower the value
// takes CAP_SYS_RESOURCE.
func SetOOMScore(root string, score int) error {
	path := filepath.Join(root, "proc/self/oom_score_adj")
	have, err := readInt(path)
	if err == nil && have == score {
		return nil
	}
	return writeInt(path, score)
}
