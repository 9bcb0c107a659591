package daemon

import (
	"bufio"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestListening reads the sockets that listen, and nothing after them.
func TestListening(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 0100007F:280A 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 2 1 0 100 0 0 10 0
   2: 0100007F:0050 0100007F:C001 01 00000000:00000000 00:00000000 00000000     0        0 3 1 0 100 0 0 10 0
   3: 00000000:0051 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4 1 0 100 0 0 10 0
`
	ports := make(map[uint16]bool)
	listening(bufio.NewScanner(strings.NewReader(table)), ports)
	if got := slices.Sorted(maps.Keys(ports)); !slices.Equal(got, []uint16{22, 10250}) {
		t.Errorf("ports %v: want 22 and 10250", got)
	}
}
