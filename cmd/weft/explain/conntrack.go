package explain

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// fullTable says that the connection tracking table is full, and is empty if it is not. No rule
// decides then what happens to a new connection. root is the root of the file system.
func fullTable(root string) string {
	count, err1 := tracking(root, "count")
	most, err2 := tracking(root, "max")
	if err1 != nil || err2 != nil || most == 0 || count < most {
		return ""
	}
	return fmt.Sprintf("; but the connection tracking table is full (%d of %d entries), and the kernel drops new connections: see weft doctor", count, most)
}

// tracking returns a number of the connection tracking table.
func tracking(root, name string) (int, error) {
	b, err := os.ReadFile(filepath.Join(root, "proc/sys/net/netfilter/nf_conntrack_"+name)) //nolint:gosec // files of the kernel
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}
