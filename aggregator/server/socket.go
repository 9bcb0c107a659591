package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/weft-proxy/weft/aggregator/trusted"
)

const (
	socketMode    = 0o660
	directoryMode = 0o750
	// capacity of sockaddr_un.sun_path without its final zero
	maxPath = 107
)

var (
	// ErrInUse means that another server listens on the socket.
	ErrInUse = errors.New("socket is in use")
	// ErrNotSocket means that another kind of file is at the socket's path.
	ErrNotSocket = errors.New("path is not a socket")
	// ErrForeignSocket means that the socket at the path belongs to another user.
	ErrForeignSocket = errors.New("socket belongs to another user")
)

// listener has a lock, so that other wefts cannot replace its socket until Close.
type listener struct {
	*net.UnixListener
	lock *os.File
}

func (l *listener) Close() error { return errors.Join(l.UnixListener.Close(), l.lock.Close()) }

// listen replaces a stale socket, on which no process listens.
func listen(path string) (_ *listener, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("listen on %s: %w", path, err)
		}
	}()
	if len(path) > maxPath {
		return nil, fmt.Errorf("the path has %d bytes: a Unix socket may have %d", len(path), maxPath)
	}
	if _, err := trusted.MakeDir(filepath.Dir(path), directoryMode); err != nil {
		return nil, fmt.Errorf("%w: name another path with --socket", err)
	}
	if err := checkPath(path); err != nil {
		return nil, err
	}
	lock, err := lock(path)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, inUse(path)
	}
	if err != nil {
		return nil, err
	}
	l, err := bind(path)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &listener{l, lock}, nil
}

func bind(path string) (*net.UnixListener, error) {
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w: another server was faster", ErrInUse)
	}
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, socketMode); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// checkPath rejects a path with any file but a socket of the daemon's user.
func checkPath(path string) error {
	st, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if st.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%w but a %s: remove it, or name another path with --socket", ErrNotSocket, fileKind(st.Mode()))
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok && int(sys.Uid) != os.Geteuid() {
		return fmt.Errorf("%w (uid %d, this is uid %d): name another path with --socket", ErrForeignSocket, sys.Uid, os.Geteuid())
	}
	return nil
}

// removeStale requires the socket's lock.
func removeStale(path string) error {
	if err := checkPath(path); err != nil {
		return err
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	switch {
	case err == nil:
		// The other server keeps no lock.
		return errors.Join(inUse(path), c.Close())
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, syscall.ECONNREFUSED):
		return os.Remove(path)
	case errors.Is(err, syscall.EPROTOTYPE):
		return fmt.Errorf("%w of the stream kind: remove it, or name another path with --socket", ErrNotSocket)
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w by a server that does not answer: stop it, or name another path with --socket", ErrInUse)
	default:
		return err
	}
}

func fileKind(m fs.FileMode) string {
	switch m.Type() {
	case 0:
		return "regular file"
	case fs.ModeDir:
		return "directory"
	case fs.ModeSymlink:
		return "symbolic link"
	case fs.ModeNamedPipe:
		return "named pipe"
	default:
		return "device"
	}
}
