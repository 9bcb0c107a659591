package server

import (
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestNetAdmin has uid 0 with CAP_NET_ADMIN here and in a user namespace of its own, and without it.
// The daemon has all capabilities, and CAP_NET_ADMIN alone.
func TestNetAdmin(t *testing.T) {
	nfttest.Require(t, nfttest.Users)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l := listenForAll(t)
	for _, tt := range []struct {
		command string
		want    bool
	}{
		{"", true},
		{"setpriv --bounding-set -all,+net_admin", true},
		{"setpriv --bounding-set -all", false},
		{"setpriv --bounding-set -net_admin", false},
		{"unshare --map-root-user", false},
		// Uid 0 of this namespace, which has no name in that of the process.
		{"unshare --user", false},
	} {
		_, end := connectPeer(t, l.Addr().String(), nil, append(strings.Fields(tt.command), exe)...)
		c, cred := accept(t, l)
		all := identify(c, cred)
		alone := make(chan bool)
		go func() {
			// The thread ends with the goroutine.
			runtime.LockOSThread()
			if err := capabilities(1 << unix.CAP_NET_ADMIN); err != nil {
				t.Error(err)
			}
			alone <- identify(c, cred).NetAdmin
		}()
		if one := <-alone; all.UID != 0 || all.NetAdmin != tt.want || one != tt.want {
			t.Errorf("%s: %+v; if the daemon has CAP_NET_ADMIN alone: %t; want %t", tt.command, all, one, tt.want)
		}
		end()
		if gone := identify(c, cred); gone.NetAdmin {
			t.Errorf("%s: a process that is gone has CAP_NET_ADMIN", tt.command)
		}
	}
	_, _ = startPeer(t, l.Addr().String(), &syscall.Credential{Uid: 4001, Gid: 4001})
	c, cred := accept(t, l)
	if p := identify(c, cred); p.NetAdmin {
		t.Errorf("another user: %+v", p)
	}
}

// capabilities limits those of the thread.
func capabilities(set uint32) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{{Effective: set, Permitted: set}}
	return unix.Capset(&header, &data[0])
}
