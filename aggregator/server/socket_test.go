package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/access"
	"github.com/weft-proxy/weft/aggregator/trusted"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

func TestListenMakesDirectoryAndSocket(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	path := filepath.Join(t.TempDir(), "run", "weft.sock")
	l, err := listen(path)
	must(t, err)
	for _, want := range []struct {
		path string
		mode os.FileMode
	}{{path, socketMode}, {filepath.Dir(path), directoryMode}} {
		st, err := os.Stat(want.path)
		if err != nil || st.Mode().Perm() != want.mode {
			t.Errorf("%s: mode %v, error %v: want %v", want.path, st.Mode().Perm(), err, want.mode)
		}
	}
	must(t, l.Close())
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("socket is still there: %v", err)
	}
}

func TestListenReplacesStaleSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weft.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must(t, err)
	l.SetUnlinkOnClose(false)
	must(t, l.Close())
	again, err := listen(path)
	must(t, err)
	must(t, again.Close())
}

func TestListenRefuses(t *testing.T) {
	dir := t.TempDir()
	live := filepath.Join(dir, "live.sock")
	l, err := listen(live)
	must(t, err)
	defer func() { _ = l.Close() }()
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, []byte("precious"), 0o600))
	theirs := filepath.Join(dir, "theirs.sock")
	tl, err := net.ListenUnix("unix", &net.UnixAddr{Name: theirs, Net: "unix"})
	must(t, err)
	defer func() { _ = tl.Close() }()
	// A user namespace may have no second user to give it to.
	given := os.Chown(theirs, 4711, 4711)
	tests := []struct {
		name, path string
		want       error
		text       string
		given      bool
	}{
		{name: "live server", path: live, want: ErrInUse, text: "by process"},
		{name: "regular file", path: file, want: ErrNotSocket, text: "regular file"},
		{name: "directory", path: dir, want: ErrNotSocket, text: "directory"},
		{name: "file as directory", path: filepath.Join(file, "weft.sock"), text: "not a directory"},
		{name: "somebody else's", path: theirs, want: ErrForeignSocket, text: "uid 4711", given: true},
		{name: "long path", path: "/run/" + strings.Repeat("x", 120), text: "125 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.given && given != nil {
				if os.Getenv("CI") == "true" && !errors.Is(given, syscall.EINVAL) {
					t.Fatal(given)
				}
				t.Skipf("needs another user to give a socket to: %v", given)
			}
			_, err := listen(tt.path)
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) || !strings.Contains(err.Error(), tt.path) {
				t.Fatalf("error is %v: want %v with %q and the path", err, tt.want, tt.text)
			}
		})
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "precious" {
		t.Fatalf("the file is gone: %q, %v", b, err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

func errorOf[T any](_ T, err error) error { return err }

// noKernel is for servers that are never served.
type noKernel struct{ aggregator.Kernel }

func (noKernel) Owner() bool { return false }

func TestAwaitTakesTheSocketOver(t *testing.T) {
	a, err := aggregator.New(aggregator.Config{Kernel: noKernel{}})
	must(t, err)
	cfg := Config{Socket: filepath.Join(t.TempDir(), "weft.sock"), Aggregator: a}
	first, err := Listen(cfg)
	must(t, err)
	type result struct {
		s   *Server
		err error
	}
	second := make(chan result, 1)
	go func() {
		s, err := Await(t.Context(), cfg)
		second <- result{s, err}
	}()
	must(t, first.Close())
	r := <-second
	if r.err != nil {
		t.Fatal(r.err)
	}
	must(t, errorOf(os.Stat(cfg.Socket)))
	must(t, r.s.Close())
}

// TestLockThatOthersCanHold has a lock that other users can open, and so hold.
func TestLockThatOthersCanHold(t *testing.T) {
	a, err := aggregator.New(aggregator.Config{Kernel: noKernel{}})
	must(t, err)
	cfg := Config{Socket: filepath.Join(t.TempDir(), "weft.sock"), Aggregator: a}
	file := cfg.Socket + lockSuffix
	for _, mode := range []os.FileMode{0o644, 0o640, 0o604} {
		must(t, os.WriteFile(file, nil, mode))
		must(t, os.Chmod(file, mode))
		want := fmt.Sprintf("lock: file %s has mode %04o: other users can change it, because they can lock it: chmod 600", file, mode)
		if _, err := Listen(cfg); !errors.Is(err, trusted.ErrUnsafe) || !strings.Contains(err.Error(), want) {
			t.Errorf("mode %v: error %v, want %s", mode, err, want)
		}
	}
	must(t, os.Chmod(file, 0o600))
	s, err := Listen(cfg)
	must(t, err)
	must(t, s.Close())
}

// TestRival reports a second server that is refused, for a while, and none that stands by.
func TestRival(t *testing.T) {
	a, err := aggregator.New(aggregator.Config{Kernel: noKernel{}})
	must(t, err)
	cfg := Config{Socket: filepath.Join(t.TempDir(), "weft.sock"), Aggregator: a}
	s, err := Listen(cfg)
	must(t, err)
	defer func() { _ = s.Close() }()
	now := time.Now()
	s.rival.now = func() time.Time { return now }
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	wantErr(t, "await a socket in use", errorOf(Await(ctx, cfg)), context.DeadlineExceeded)
	// One that stands by is not a rival.
	must(t, s.Rival())
	for range 2 {
		wantErr(t, "listen on a socket in use", errorOf(Listen(cfg)), ErrInUse)
		if err := s.Rival(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("(process %d) wanted the socket %s ", os.Getpid(), cfg.Socket)) {
			t.Errorf("of a rival: %v", err)
		}
		now = now.Add(rivalRecent)
		must(t, s.Rival())
	}
	must(t, s.Close())
	// What the last server was told does not count for the next.
	next, err := Listen(cfg)
	must(t, err)
	if err := errors.Join(next.Rival(), next.Close()); err != nil {
		t.Error(err)
	}
}

// TestLease: one process at a time has the lease, and without a holder nothing is an error.
func TestLease(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a directory
		t.Fatal(err)
	}
	log, socket := slog.New(slog.DiscardHandler), HoldSocket(filepath.Join(dir, "weft.sock"))
	if f, err := NewLease(socket, log).Inherit(); f != nil || err != nil {
		t.Fatalf("without a holder: %v, %v", f, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Hold(ctx, socket, log) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the holder ends with %v", err)
		}
	})
	first, second := NewLease(socket, log), NewLease(socket, log)
	for deadline := time.Now().Add(time.Minute); first.conn == nil; <-time.After(time.Millisecond) {
		if f, err := first.Inherit(); f != nil || err != nil || time.Now().After(deadline) {
			t.Fatalf("the first lease of an empty holder: %v, %v", f, err)
		}
	}
	if f, err := first.Inherit(); f != nil || err != nil {
		t.Errorf("the same lease again: %v, %v", f, err)
	}
	if _, err := second.Inherit(); !errors.Is(err, kernel.ErrHeld) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("a second lease: %v, want that process %d has it", err, os.Getpid())
	}
	must(t, first.conn.Close())
	if f, err := second.Inherit(); f != nil || err != nil || second.conn == nil {
		t.Errorf("after the end of the first: %v, %v", f, err)
	}
	// Another holder does not take the socket of one that runs.
	wantErr(t, "a second holder", Hold(ctx, socket, log), ErrInUse)
}

// envPeer makes the test binary a process that connects to a socket.
const envPeer = "WEFT_TEST_PEER_SOCKET"

// TestPeerProcess is not a test: it is the process that connects, and stays
// until its standard input ends.
func TestPeerProcess(t *testing.T) {
	socket := os.Getenv(envPeer)
	if socket == "" {
		t.Skip("the process of another test")
	}
	c, err := net.Dial("unix", socket)
	must(t, err)
	defer c.Close()
	_, _ = os.Stdout.WriteString("connected\n")
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
}

// startPeer starts a process of another user that connects. It has connected
// when this returns, and ends with end.
func startPeer(t *testing.T, socket string, cred *syscall.Credential) (pid int, end func()) {
	t.Helper()
	// The binary is where another user may not look for it; the link leads
	// there all the same.
	return connectPeer(t, socket, cred, "/proc/self/exe")
}

// connectPeer is startPeer with the command that starts the test binary.
func connectPeer(t *testing.T, socket string, cred *syscall.Credential, command ...string) (pid int, end func()) {
	t.Helper()
	cmd := exec.Command(command[0], append(command[1:], "-test.run=^TestPeerProcess$")...)
	cmd.Env = append(os.Environ(), envPeer+"="+socket)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred, Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	ended := false
	end = func() {
		if !ended {
			ended = true
			_ = in.Close()
			_ = cmd.Wait()
		}
	}
	t.Cleanup(end)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "connected\n" {
		t.Fatalf("the process says %q: %v", line, err)
	}
	return cmd.Process.Pid, end
}

// listenForAll makes a socket that every user can connect to.
func listenForAll(t *testing.T) *net.UnixListener {
	t.Helper()
	dir, err := os.MkdirTemp("", "weft")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	for _, p := range []string{dir, path} {
		must(t, os.Chmod(p, 0o777))
	}
	must(t, l.SetDeadline(time.Now().Add(3*time.Minute)))
	return l
}

func accept(t *testing.T, l *net.UnixListener) (net.Conn, access.Peer) {
	t.Helper()
	c, err := l.Accept()
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	cred, err := credentialsOf(c)
	must(t, err)
	return c, cred
}

func TestIdentifyProcess(t *testing.T) {
	nfttest.Require(t, nfttest.Users)
	l := listenForAll(t)
	pid, end := startPeer(t, l.Addr().String(), &syscall.Credential{Uid: 4001, Gid: 4002, Groups: []uint32{4003, 4004}})
	c, cred := accept(t, l)
	p := identify(c, cred)
	exe, err := os.Executable()
	must(t, err)
	if int(p.PID) != pid || p.UID != 4001 || p.GID != 4002 || !slices.Equal(p.Groups, []uint32{4003, 4004}) || p.Executable != exe || p.Unknown != nil {
		t.Errorf("peer %+v: want process %d, executable %s", p, pid, exe)
	}
	if len(p.Cgroups) == 0 || !strings.HasPrefix(p.Cgroups[0], "/") {
		t.Errorf("cgroups %q", p.Cgroups)
	}
	// The same by the pid alone, as on kernels without SO_PEERPIDFD.
	fd, err := openProcess(&p)
	must(t, err)
	_ = syscall.Close(fd)
	stranger := p
	stranger.UID = 4005
	if fd, err := openProcess(&stranger); err == nil {
		_ = syscall.Close(fd)
		t.Error("a process of another user was taken for the peer")
	}
	end()
	if gone := identify(c, cred); gone.Unknown == nil || gone.Executable != "" || len(gone.Cgroups) != 0 {
		t.Errorf("the peer that is gone: %+v", gone)
	}
	if fd, err := openProcess(&p); err == nil {
		_ = syscall.Close(fd)
		t.Error("opened a process that is gone")
	}
}

func TestCgroups(t *testing.T) {
	for text, want := range map[string][]string{
		"":                       nil,
		"0::/system.slice/a\n":   {"/system.slice/a"},
		"0::/a:b\n":              {"/a:b"},
		"12:cpu,x:/c\n0::/a\n":   {"/a", "/c"},
		"1:name=systemd:/s\nx\n": {"/s"},
	} {
		if got := cgroups(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestNetAdmin has uid 0 with CAP_NET_ADMIN here and in a user namespace of its own, and without it.
// The daemon has all capabilities, and CAP_NET_ADMIN alone.
func TestNetAdmin(t *testing.T) {
	nfttest.Require(t, nfttest.Users)
	exe, err := os.Executable()
	must(t, err)
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
