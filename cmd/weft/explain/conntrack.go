package explain

import (
	"fmt"

	"github.com/weft-proxy/weft/cmd/weft/sysctl"
)

// fullTable says that the connection tracking table is full, and is empty if it is not. No rule
// decides then what happens to a new connection. root is the root of the file system.
func fullTable(root string) string {
	count, most, err := sysctl.Tracked(root)
	if err != nil || most == 0 || count < most {
		return ""
	}
	return fmt.Sprintf("; but the connection tracking table is full (%d of %d entries), and the kernel drops new connections: see weft doctor", count, most)
}
