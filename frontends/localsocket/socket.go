package localsocket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// Modes of the socket and its created directory.
const (
	socketMode    = 0o660
	directoryMode = 0o750
	// sockaddr_un.sun_path without its final zero
	maxPath = 107
)

var errInUse = errors.New("another process answers there: run only one frontend, or give it another socket")

// listen makes the socket. A lock of the directory serializes processes.
func listen(ctx context.Context, path string) (net.Listener, error) {
	if len(path) > maxPath {
		return nil, fmt.Errorf("the path has %d bytes: that of a Unix socket has at most %d", len(path), maxPath)
	}
	if err := os.MkdirAll(filepath.Dir(path), directoryMode); err != nil {
		return nil, err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX); err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir.Name(), err)
	}
	if err := removeStale(ctx, path); err != nil {
		return nil, err
	}
	// The kernel gives the socket its descriptor's mode, so it never has another one; bits cleared by the
	// umask are added later.
	cfg := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		return errors.Join(c.Control(func(fd uintptr) { err = syscall.Fchmod(int(fd), socketMode) }), err)
	}}
	l, err := cfg.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, socketMode); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// removeStale removes only a socket that a killed process left.
func removeStale(ctx context.Context, path string) error {
	st, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case st.Mode().Type() != fs.ModeSocket:
		return errors.New("the path is not a socket: remove it, or give the frontend another socket")
	}
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	switch {
	case err == nil, errors.Is(err, syscall.EAGAIN):
		// A process that does not accept has a full queue.
		if c != nil {
			_ = c.Close()
		}
		return errInUse
	case errors.Is(err, syscall.ECONNREFUSED):
		return os.Remove(path)
	default:
		return err
	}
}
