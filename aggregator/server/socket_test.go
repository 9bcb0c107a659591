package server

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestListenMakesDirectoryAndSocket(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	path := filepath.Join(t.TempDir(), "run", "weft.sock")
	l, err := listen(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		path string
		mode os.FileMode
	}{{path, socketMode}, {filepath.Dir(path), directoryMode}} {
		st, err := os.Stat(want.path)
		if err != nil || st.Mode().Perm() != want.mode {
			t.Errorf("%s: mode %v, error %v: want %v", want.path, st.Mode().Perm(), err, want.mode)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("socket is still there: %v", err)
	}
}

func TestListenReplacesStaleSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weft.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestListenRefuses(t *testing.T) {
	dir := t.TempDir()
	live := filepath.Join(dir, "live.sock")
	l, err := listen(live)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	theirs := filepath.Join(dir, "theirs.sock")
	tl, err := net.ListenUnix("unix", &net.UnixAddr{Name: theirs, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
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
