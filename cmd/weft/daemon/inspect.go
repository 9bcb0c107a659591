package daemon

import (
	"bufio"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-proxy/weft/nft/lint"
)

// kubeletPort is the port of the kubelet, if it is not configured otherwise.
const kubeletPort = 10250

// needs returns what the node must be able to send and receive: SSH and the kubelet if something listens on
// their ports, and the API server if there is a kubelet.
func needs() []lint.Need {
	listens := make(map[uint16]bool)
	for _, table := range []string{"tcp", "tcp6"} {
		if f, err := os.Open("/proc/thread-self/net/" + table); err == nil {
			listening(bufio.NewScanner(f), listens)
			_ = f.Close()
		}
	}
	return slices.DeleteFunc(slices.Clone(lint.NodeNeeds), func(n lint.Need) bool {
		return !n.Client && !listens[n.Port] || n.Client && !listens[kubeletPort]
	})
}

// listening adds the ports that a table of the kernel's TCP sockets begins with. The sockets that listen come
// first, so the rest, which can be long, is not read.
func listening(s *bufio.Scanner, ports map[uint16]bool) {
	const stateListen = "0A"
	for first := true; s.Scan(); first = false {
		fields := strings.Fields(s.Text())
		if first || len(fields) < 4 {
			continue // the head
		}
		if fields[3] != stateListen {
			return
		}
		_, hex, _ := strings.Cut(fields[1], ":")
		if port, err := strconv.ParseUint(hex, 16, 16); err == nil {
			ports[uint16(port)] = true
		}
	}
}
