package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/aggregator/access"
)

// credentialsOf reads SO_PEERCRED: the process at the other end, as of connect(2).
func credentialsOf(c net.Conn) (access.Peer, error) {
	var cred *unix.Ucred
	err := control(c, func(fd int) (err error) {
		cred, err = unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		return err
	})
	if err != nil {
		return access.Peer{}, fmt.Errorf("read peer credentials: %w", err)
	}
	return access.Peer{PID: cred.Pid, UID: cred.Uid, GID: cred.Gid}, nil
}

// identify completes a peer's credentials. Peer.Unknown has the errors, because the data may not be
// needed.
func identify(c net.Conn, p access.Peer) access.Peer {
	groupsErr := control(c, func(fd int) (err error) {
		p.Groups, err = peerGroups(fd)
		return err
	})
	if groupsErr != nil {
		groupsErr = fmt.Errorf("supplementary groups: %w", groupsErr)
	}
	err := inspect(c, &p)
	if err != nil {
		p.Executable, p.Cgroups = "", nil
	}
	p.Unknown = errors.Join(groupsErr, err, p.Unknown)
	return p
}

// closedByPeer reports whether either end of a connection is closed, even with unread data.
func closedByPeer(c net.Conn) bool {
	var events int16
	err := control(c, func(fd int) error {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}} //nolint:gosec // a descriptor
		for {
			if _, err := unix.Poll(p, 0); !errors.Is(err, unix.EINTR) {
				events = p[0].Revents
				return nil
			}
		}
	})
	return err != nil || events&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0
}

func control(c net.Conn, f func(fd int) error) error {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return fmt.Errorf("%T has no descriptor", c)
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return err
	}
	var ferr error
	return errors.Join(raw.Control(func(fd uintptr) { ferr = f(int(fd)) }), ferr)
}

// more than the kernel's NGROUPS_MAX
const maxGroups = 1 << 17

// peerGroups reads SO_PEERGROUPS, as of connect(2).
func peerGroups(fd int) ([]uint32, error) {
	groups := make([]uint32, 64)
	for {
		size := uint32(len(groups) * 4) //nolint:gosec // bounded below
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(unsafe.SliceData(groups))), uintptr(unsafe.Pointer(&size)), 0)
		n := int(size / 4)
		switch {
		case errno == 0:
			return groups[:min(n, len(groups))], nil
		case errno == unix.ERANGE && n > len(groups) && n <= maxGroups:
			groups = make([]uint32, n)
		default:
			return nil, errno
		}
	}
}

// inspect reads a peer's executable, cgroups and capabilities from /proc. A pid can be reused, so
// the process must still exist after all reads.
//
// Before SO_PEERPIDFD (Linux 6.5), only the pid is known. If a process of the same user reuses it
// between connect and accept, that process is taken for the peer, even with more capabilities.
func inspect(c net.Conn, p *access.Peer) error {
	if p.PID <= 0 {
		return errors.New("the process is in another PID namespace (run the aggregator in that of the node, hostPID in Kubernetes)")
	}
	pidfd, err := peerProcess(c, p)
	if err != nil {
		return fmt.Errorf("process %d: %w", p.PID, err)
	}
	defer func() { _ = unix.Close(pidfd) }()
	dir := "/proc/" + strconv.Itoa(int(p.PID))
	exe, exeErr := executableOf(dir)
	cgroup, cgroupErr := os.ReadFile(dir + "/cgroup") //nolint:gosec // of a number
	admin, adminErr := netAdmin(p, dir)
	if err := unix.PidfdSendSignal(pidfd, 0, nil, 0); errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("process %d is gone", p.PID)
	}
	p.Executable, p.NetAdmin = exe, admin
	p.Cgroups = cgroups(string(cgroup))
	p.Unknown = errors.Join(exeErr, cgroupErr, adminErr)
	return nil
}

func peerProcess(c net.Conn, p *access.Peer) (int, error) {
	pidfd := -1
	err := control(c, func(fd int) (err error) {
		pidfd, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
		return err
	})
	if err == nil {
		return pidfd, nil
	}
	if !errors.Is(err, unix.ENOPROTOOPT) {
		return -1, err
	}
	return openProcess(p)
}

// openProcess is for kernels without SO_PEERPIDFD.
func openProcess(p *access.Peer) (int, error) {
	pidfd, err := unix.PidfdOpen(int(p.PID), 0)
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err := unix.Stat("/proc/"+strconv.Itoa(int(p.PID)), &st); err != nil {
		_ = unix.Close(pidfd)
		return -1, err
	}
	// The directory, unlike its files, always belongs to the user of the process.
	if st.Uid != p.UID {
		_ = unix.Close(pidfd)
		return -1, errors.New("its pid is another user's by now")
	}
	return pidfd, nil
}

// cgroups returns the paths in /proc/PID/cgroup, version 2 first.
func cgroups(text string) []string {
	var paths []string
	for line := range strings.Lines(text) {
		hierarchy, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		_, path, ok := strings.Cut(rest, ":")
		switch {
		case !ok:
		case hierarchy == "0":
			paths = append([]string{path}, paths...)
		default:
			paths = append(paths, path)
		}
	}
	return paths
}
