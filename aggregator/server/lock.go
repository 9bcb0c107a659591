package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lockSuffix is what the lock of a socket is called after it.
const lockSuffix = ".lock"

// lockInterval is the time between attempts to get the lock of a socket.
const lockInterval = 100 * time.Millisecond

// lock makes a socket this server's, until the file is closed or the process
// ends. It keeps two servers apart that find the same stale socket at the same
// time: one of them would remove the other's. The file stays.
//
// Possible errors: ErrInUse, those of the file system.
func lock(socket string) (*os.File, error) {
	f, err := os.OpenFile(socket+lockSuffix, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) //nolint:gosec // a descriptor
	if err == nil {
		return f, nil
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = inUse(socket)
	}
	return nil, errors.Join(err, f.Close())
}

// inUse returns the error that names the process that has a socket.
func inUse(socket string) error {
	const remedy = "stop it, name another path with --socket, or wait for its end with --standby"
	c, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return fmt.Errorf("%w by a server that starts or stops: %s", ErrInUse, remedy)
	}
	defer func() { _ = c.Close() }()
	cred, err := peerOf(c)
	if err != nil {
		return fmt.Errorf("%w by another process: %s", ErrInUse, remedy)
	}
	return fmt.Errorf("%w by process %d: %s", ErrInUse, cred.PID, remedy)
}

// Await is Listen for one that stands by: while another server has the socket it
// waits. The error is ctx's where that ends first.
func Await(ctx context.Context, cfg Config) (*Server, error) {
	cfg.setDefaults()
	for said := false; ; {
		s, err := Listen(cfg)
		if !errors.Is(err, ErrInUse) {
			return s, err
		}
		if !said {
			cfg.Logger.Info("standing by", "error", err)
			said = true
		}
		if err := awaitLock(ctx, cfg.Socket); err != nil {
			return nil, err
		}
	}
}

// awaitLock returns once it is worth to try again to listen: it never connects to
// the server that it waits for.
func awaitLock(ctx context.Context, socket string) error {
	f, err := os.OpenFile(socket+lockSuffix, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	tick := time.NewTicker(lockInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) //nolint:gosec // a descriptor
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			// Closing the file gives it back.
			return err
		}
	}
}
