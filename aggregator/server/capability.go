package server

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/aggregator/access"
)

// netAdmin reports whether a peer of uid 0 holds CAP_NET_ADMIN in the daemon's user namespace, or
// is the daemon. dir is the process's directory in /proc.
func netAdmin(p *access.Peer, dir string) (bool, error) {
	if p.UID != 0 || int(p.PID) == os.Getpid() {
		return p.UID == 0, nil
	}
	status, err := os.ReadFile(dir + "/status") //nolint:gosec // of a number
	if err != nil {
		return false, err
	}
	// A process can make permitted capabilities effective at any time.
	_, rest, _ := strings.Cut(string(status), "\nCapPrm:\t")
	set, _, _ := strings.Cut(rest, "\n")
	held, err := strconv.ParseUint(set, 16, 64)
	if err != nil {
		return false, fmt.Errorf("%s/status: permitted capabilities: %w", dir, err)
	}
	if held&(1<<unix.CAP_NET_ADMIN) == 0 {
		return false, nil
	}
	return sameUserNamespace(dir)
}

// sameUserNamespace reports whether a process is in the daemon's user namespace. In its own
// namespace a process has all capabilities, but only there.
//
// The kernel hides the namespace of a process with more capabilities than the daemon; uid_map is
// public. A process without CAP_SETFCAP cannot map root in a namespace (Linux 5.12), so its map
// differs.
func sameUserNamespace(dir string) (bool, error) {
	ours, err := os.Stat("/proc/self/ns/user")
	if err != nil {
		return false, err
	}
	theirs, err := os.Stat(dir + "/ns/user")
	if !errors.Is(err, os.ErrPermission) {
		return err == nil && os.SameFile(ours, theirs), err
	}
	ourMap, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return false, err
	}
	theirMap, err := os.ReadFile(dir + "/uid_map") //nolint:gosec // of a number
	return bytes.Equal(ourMap, theirMap), err
}
