package server

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator/access"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	for _, p := range []string{dir, path} {
		if err := os.Chmod(p, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.SetDeadline(time.Now().Add(3 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	return l
}

func accept(t *testing.T, l *net.UnixListener) (net.Conn, access.Peer) {
	t.Helper()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	cred, err := credentialsOf(c)
	if err != nil {
		t.Fatal(err)
	}
	return c, cred
}

func TestIdentifyProcess(t *testing.T) {
	nfttest.Require(t, nfttest.Users)
	l := listenForAll(t)
	pid, end := startPeer(t, l.Addr().String(), &syscall.Credential{Uid: 4001, Gid: 4002, Groups: []uint32{4003, 4004}})
	c, cred := accept(t, l)
	p := identify(c, cred)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if int(p.PID) != pid || p.UID != 4001 || p.GID != 4002 || !slices.Equal(p.Groups, []uint32{4003, 4004}) || p.Executable != exe || p.Unknown != nil {
		t.Errorf("peer %+v: want process %d, executable %s", p, pid, exe)
	}
	if len(p.Cgroups) == 0 || !strings.HasPrefix(p.Cgroups[0], "/") {
		t.Errorf("cgroups %q", p.Cgroups)
	}
	// The same by the pid alone, as on kernels without SO_PEERPIDFD.
	fd, err := openProcess(&p)
	if err != nil {
		t.Fatal(err)
	}
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

// TestIdentifyProcessThatIsGone before it was accepted.
func TestIdentifyProcessThatIsGone(t *testing.T) {
	l := listenForAll(t)
	_, end := startPeer(t, l.Addr().String(), nil)
	end()
	c, cred := accept(t, l)
	p := identify(c, cred)
	if p.Unknown == nil || p.Executable != "" || len(p.Cgroups) != 0 || p.UID != uint32(os.Geteuid()) {
		t.Errorf("peer %+v", p)
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
