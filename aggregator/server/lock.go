package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/aggregator/trusted"
)

const lockSuffix = ".lock"

const lockInterval = 100 * time.Millisecond

// lock reserves a socket for this server until the file is closed. Otherwise, two servers could
// remove each other's socket as stale. The error wraps EWOULDBLOCK if another process has the lock,
// and ErrUnsafe if other users can open the file.
func lock(socket string) (*os.File, error) {
	f, err := trusted.OpenFile(socket+lockSuffix, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if err := checkPrivate(f); err != nil {
		return nil, errors.Join(fmt.Errorf("lock: %w", err), f.Close())
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil { //nolint:gosec // a descriptor
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// checkPrivate refuses a file that other users can read: they could lock it and stop every server.
func checkPrivate(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o066 != 0 {
		return fmt.Errorf("file %s has mode %04o: %w, because they can lock it: chmod 600", f.Name(), mode, trusted.ErrUnsafe)
	}
	return nil
}

func inUse(socket string) error {
	const remedy = "stop it, name another path with --socket, or wait for its end with --standby"
	c, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return fmt.Errorf("%w by a server that starts or stops: %s", ErrInUse, remedy)
	}
	defer func() { _ = c.Close() }()
	cred, err := credentialsOf(c)
	if err != nil {
		return fmt.Errorf("%w by another process: %s", ErrInUse, remedy)
	}
	return fmt.Errorf("%w by process %d: %s", ErrInUse, cred.PID, remedy)
}

// Await is Listen for a daemon on standby: it waits while another server has the socket, or until
// ctx ends.
func Await(ctx context.Context, cfg Config) (*Server, error) {
	cfg.setDefaults()
	for logged := false; ; logged = true {
		s, err := open(cfg)
		if !errors.Is(err, ErrInUse) {
			return s, err
		}
		if !logged {
			cfg.Logger.Info("standing by", "error", err)
		}
		if err := awaitLock(ctx, cfg.Socket); err != nil {
			return nil, err
		}
	}
}

// awaitLock waits until the lock is free, and never connects to the server.
func awaitLock(ctx context.Context, socket string) error {
	tick := time.NewTicker(lockInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		f, err := lock(socket)
		if err == nil {
			return f.Close()
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
	}
}
