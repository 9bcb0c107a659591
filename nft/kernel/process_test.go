package kernel

import (
	"strings"
	"testing"
)

func TestSocketInode(t *testing.T) {
	const table = `sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode
000000009d8a3f0a 0   1234       00000550 0        0        0     2        0        100
000000009d8a3f0b 12  1234       00000000 0        0        0     2        0        101
000000009d8a3f0c 12  3305413411 00000000 0        0        0     2        0        102
short line
`
	for port, want := range map[uint32]string{1234: "101", 3305413411: "102", 1: ""} {
		if got := socketInode(strings.NewReader(table), port); got != want {
			t.Errorf("inode of port %d = %q, want %q", port, got, want)
		}
	}
}
