package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTop reads weft top on a terminal of 100 x 30: updates and connections appear, and after q
// the terminal is as it was.
func TestTop(t *testing.T) {
	if !inOwnNamespace(t) {
		return
	}
	dir := t.TempDir()
	socket := filepath.Join(dir, "run", "weft.sock")
	writeFile(t, filepath.Join(dir, "manifests", "web.yaml"), serviceManifest(53, "UDP"))
	for _, args := range []string{"link add d0 type veth peer name d1", "link set d1 up", "link set d0 up", "link set lo up", "addr add 10.244.1.1/16 dev d0", "route add 10.96.0.0/16 dev d0"} {
		if out, err := exec.CommandContext(t.Context(), "ip", strings.Fields(args)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", args, err, out)
		}
	}
	startWeft(t, "run", "--manifests", filepath.Join(dir, "manifests"), "--hostname-override", "node-a", "--cluster-cidr", "10.244.0.0/16",
		"--socket", socket, "--state-dir", filepath.Join(dir, "state"), "--metrics-bind-address=", "--healthz-bind-address=")
	c := dialWeft(t, t.Context(), socket)

	controller, terminal := openTerminal(t)
	before := terminalMode(t, terminal)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Args = []string{"weft", "top", "--socket", socket, "--interval", "200ms"}
	cmd.Env = append(os.Environ(), "TERM=xterm")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(t, cmd.Start())
	shown := &logged{}
	go func() {
		for b := make([]byte, 4096); ; {
			n, err := controller.Read(b)
			_, _ = shown.Write(b[:n])
			if err != nil {
				return
			}
		}
	}()
	defer func() {
		if t.Failed() {
			t.Logf("shown: %q", shown.String())
		}
	}()
	for what, change := range map[string]func(i int) error{
		`uid-\d+ +[1-9]\d*\.\d `: func(i int) error {
			_, err := c.Apply(t.Context(), listOf(fmt.Sprintf("192.0.2.%d", i%200+1)))
			return err
		},
		`shop/web +53/udp +[1-9]\d*\.\d +1`: func(int) error {
			conn, err := net.Dial("udp", "10.96.0.10:53") //nolint:noctx // it does not wait
			if err == nil {
				_, err = conn.Write([]byte("x"))
				_ = conn.Close()
			}
			return err
		},
	} {
		i, pattern := 0, regexp.MustCompile(what)
		eventually(t, what, func() bool {
			must(t, change(i))
			i++
			return pattern.MatchString(shown.String())
		})
	}
	if !strings.HasPrefix(shown.String(), "\x1b[?1049h") || terminalMode(t, terminal).Lflag&unix.ICANON != 0 {
		t.Error("the terminal is not in the mode of a full screen")
	}
	if _, err := controller.WriteString("xq"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	eventually(t, "the terminal's own screen", func() bool { return strings.HasSuffix(shown.String(), "\x1b[?1049l") })
	if after := terminalMode(t, terminal); *after != *before {
		t.Errorf("the mode of the terminal was %+v, and is %+v", before, after)
	}
}

// openTerminal returns both ends of a pseudo terminal.
func openTerminal(t *testing.T) (controller, terminal *os.File) {
	t.Helper()
	controller, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	must(t, err)
	t.Cleanup(func() { _ = controller.Close() })
	n, err := unix.IoctlGetInt(int(controller.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(controller.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(controller.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 100})
	}
	must(t, err)
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	must(t, err)
	t.Cleanup(func() { _ = terminal.Close() })
	return controller, terminal
}

func terminalMode(t *testing.T, f *os.File) *unix.Termios {
	t.Helper()
	mode, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	must(t, err)
	return mode
}
