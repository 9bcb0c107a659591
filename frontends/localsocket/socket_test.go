package localsocket

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestSocket starts on what a killed predecessor left, and not beside one that lives.
func TestSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "test.sock")
	s := start(t, Config{Path: path})
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != socketMode {
		t.Errorf("%v, %v: want mode %o", info, err, socketMode)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != directoryMode {
		t.Errorf("%v, %v: want mode %o", info, err, directoryMode)
	}
	if err := Serve(t.Context(), Config{Path: path}); !errors.Is(err, errInUse) {
		t.Errorf("a second one on the same socket: %v", err)
	}
	s.stop()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket after the end: %v", err)
	}
	leave(t, path)
	start(t, Config{Path: path}).stop()
}

// TestTwoAtOnce starts several servers on what a killed predecessor left: one of them serves.
func TestTwoAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.sock")
	for range 20 {
		leave(t, path)
		var mu sync.Mutex
		var all []net.Listener
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				l, err := listen(t.Context(), path)
				if err != nil {
					if !errors.Is(err, errInUse) {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				defer mu.Unlock()
				all = append(all, l)
			})
		}
		wg.Wait()
		if len(all) != 1 {
			t.Errorf("%d servers on one socket", len(all))
		}
		for _, l := range all {
			_ = l.Close()
		}
	}
}

// TestBadPath refuses paths that are not those of a socket, and leaves what is there.
func TestBadPath(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("file"), []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	leave(t, at("stale"))
	if err := errors.Join(os.Symlink(at("stale"), at("link")), os.Mkdir(at("dir"), 0o700), syscall.Mkfifo(at("pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	datagrams, err := net.ListenPacket("unixgram", at("datagrams"))
	if err != nil {
		t.Fatal(err)
	}
	defer datagrams.Close()
	for path, want := range map[string]string{
		at("file"):                   "not a socket",
		at("link"):                   "not a socket",
		at("dir"):                    "not a socket",
		at("pipe"):                   "not a socket",
		at("datagrams"):              "wrong type",
		at("file/a.sock"):            "not a directory",
		at(strings.Repeat("x", 120)): "at most 107",
		"/proc/self/nothing/a.sock":  "/proc",
		"/proc/self/a.sock":          "/proc",
	} {
		if err := Serve(t.Context(), Config{Path: path}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", path, err, want)
		}
	}
	if b, err := os.ReadFile(at("file")); string(b) != "precious" {
		t.Errorf("the file has %q, %v", b, err)
	}
	for _, name := range []string{"link", "dir", "pipe", "datagrams", "stale"} {
		if _, err := os.Lstat(at(name)); err != nil {
			t.Error(err)
		}
	}
}

// TestBusySocket leaves the socket of a process that accepts no connections.
func TestBusySocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.sock")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	for range 3 { // The first one waits in the queue, which then is full.
		if err := Serve(t.Context(), Config{Path: path}); !errors.Is(err, errInUse) {
			t.Errorf("error %v, want %v", err, errInUse)
		}
		c, err := net.Dial("unix", path)
		if err == nil {
			defer c.Close()
		}
	}
}

// TestCanceled makes no socket after the end.
func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path := filepath.Join(t.TempDir(), "test.sock")
	leave(t, path)
	if _, err := listen(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// leave makes a socket on which no process listens any more.
func leave(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
