package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/kernel"
)

// A holder keeps the netlink socket that owns weft's tables while no weft runs. It listens on a
// Unix socket; a connected weft holds a lease. The holder first sends one byte: holderHas with the
// netlink socket as SCM_RIGHTS, holderHasNone, or holderBusy with the process number of the lease's
// owner. A weft with its own socket sends leaseKeeps with it.
const (
	holderHas     = 'h'
	holderHasNone = 'n'
	holderBusy    = 'b'
	leaseKeeps    = 'k'
)

const (
	// for the first messages of both sides
	holdTimeout = 5 * time.Second
	// between attempts to reach a holder
	holdInterval = time.Second
	// for the lease of a process that has just ended
	leaseAttempts = 20
	leaseInterval = 50 * time.Millisecond
)

// HoldSocket returns the path of the holder's socket beside that of an aggregator.
func HoldSocket(socket string) string { return filepath.Join(filepath.Dir(socket), "hold.sock") }

// Hold keeps the netlink socket that a weft hands over, until ctx ends. A running weft then hands
// the socket to the next holder.
//
// Possible errors: Listen's errors about the socket.
func Hold(ctx context.Context, socket string, log *slog.Logger) error {
	l, err := listen(socket)
	if err != nil {
		return err
	}
	h := &holder{log: log}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	var served sync.WaitGroup
	defer served.Wait()
	for {
		c, err := l.AcceptUnix()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return errors.Join(fmt.Errorf("listen on %s: %w", socket, err), l.Close())
		}
		served.Go(func() {
			defer context.AfterFunc(ctx, func() { _ = c.Close() })()
			defer c.Close()
			if err := h.serve(c); err != nil && ctx.Err() == nil {
				log.Warn("a connection failed", "error", err)
			}
		})
	}
}

type holder struct {
	log *slog.Logger

	mu sync.Mutex
	// file is nil before the first weft. process has the lease, or is 0.
	file    *os.File
	process int32
}

// serve leases the socket to one process until the connection ends.
func (h *holder) serve(c *net.UnixConn) error {
	peer, err := credentialsOf(c)
	if err != nil {
		return err
	}
	if peer.UID != uint32(os.Geteuid()) { //nolint:gosec // a user
		return fmt.Errorf("process %d is of user %d: only those of this user get the socket", peer.PID, peer.UID)
	}
	if err := c.SetDeadline(time.Now().Add(holdTimeout)); err != nil {
		return err
	}
	file, busy := h.lease(peer.PID)
	if busy != 0 {
		_, err := fmt.Fprintf(c, "%c%d", holderBusy, busy)
		return err
	}
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.process = 0
	}()
	if err := sendFile(c, file); err != nil {
		return err
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		return err
	}
	for {
		what, file, err := receiveFile(c)
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET):
			h.log.Info("holding the netlink socket of a weft that has ended", "process", peer.PID)
			return nil
		case err != nil:
			return err
		case len(what) == 1 && what[0] == leaseKeeps && file != nil:
			h.keep(file)
			h.log.Info("keeping the netlink socket of a weft", "process", peer.PID)
		default:
			return errors.Join(fmt.Errorf("process %d sent %q", peer.PID, what), file.Close())
		}
	}
}

func (h *holder) lease(process int32) (file *os.File, busy int32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.process != 0 {
		return nil, h.process
	}
	h.process = process
	return h.file, 0
}

// keep stores file: the kernel ends the ownership of a socket that no process holds.
func (h *holder) keep(file *os.File) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.file != nil {
		_ = h.file.Close()
	}
	h.file = file
}

func sendFile(c *net.UnixConn, file *os.File) error {
	what, rights := []byte{holderHasNone}, []byte(nil)
	if file != nil {
		what[0], rights = holderHas, unix.UnixRights(int(file.Fd())) //nolint:gosec // a descriptor
	}
	_, _, err := c.WriteMsgUnix(what, rights, nil)
	return err
}

func receiveFile(c *net.UnixConn) (what []byte, file *os.File, err error) {
	b, rights := make([]byte, 32), make([]byte, unix.CmsgSpace(4))
	n, m, _, _, err := c.ReadMsgUnix(b, rights)
	if err != nil {
		return nil, nil, err
	}
	if n == 0 {
		return nil, nil, io.EOF
	}
	messages, err := unix.ParseSocketControlMessage(rights[:m])
	if err != nil || len(messages) == 0 {
		return b[:n], nil, err
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) == 0 {
		return b[:n], nil, err
	}
	for _, more := range fds[1:] {
		_ = unix.Close(more)
	}
	return b[:n], os.NewFile(uintptr(fds[0]), "nftables"), nil
}

// Lease is weft's side of a holder. Without a holder, no socket is kept, and methods do not fail.
type Lease struct {
	socket string
	log    *slog.Logger

	// asked closes ready after Inherit, because Keep replaces the socket that Inherit needs.
	asked func()
	ready chan struct{}

	mu   sync.Mutex
	conn *net.UnixConn
}

// NewLease returns a lease of the holder that listens on socket.
func NewLease(socket string, log *slog.Logger) *Lease {
	l := &Lease{socket: socket, log: log, ready: make(chan struct{})}
	l.asked = sync.OnceFunc(func() { close(l.ready) })
	return l
}

// Inherit is kernel.Config.Inherit.
func (l *Lease) Inherit() (file *os.File, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for range leaseAttempts {
		if file, err = l.connect(); !errors.Is(err, kernel.ErrHeld) {
			break
		}
		<-time.After(leaseInterval)
	}
	if err != nil && !noHolder(err) {
		return nil, err
	}
	l.asked()
	return file, nil
}

func noHolder(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

// connect asks the holder for the lease, unless there is a connection. It requires mu.
func (l *Lease) connect() (*os.File, error) {
	if l.conn != nil {
		return nil, nil
	}
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: l.socket, Net: "unix"})
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*os.File, error) {
		return nil, errors.Join(fmt.Errorf("holder at %s: %w", l.socket, err), c.Close())
	}
	switch peer, err := credentialsOf(c); {
	case err != nil:
		return fail(err)
	case peer.UID != uint32(os.Geteuid()): //nolint:gosec // a user
		return fail(fmt.Errorf("process %d is of user %d", peer.PID, peer.UID))
	}
	if err := c.SetDeadline(time.Now().Add(holdTimeout)); err != nil {
		return fail(err)
	}
	what, file, err := receiveFile(c)
	switch {
	case err != nil:
		return fail(err)
	case what[0] == holderBusy:
		return fail(fmt.Errorf("%w: process %s", kernel.ErrHeld, strings.TrimSpace(string(what[1:]))))
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		return fail(err)
	}
	l.conn = c
	return file, nil
}

// Keep hands conn's netlink socket to each holder, from the first Inherit until ctx ends.
func (l *Lease) Keep(ctx context.Context, conn *kernel.Conn) {
	select {
	case <-ctx.Done():
	case <-l.ready:
	}
	for ctx.Err() == nil {
		if err := l.keep(ctx, conn); err != nil && !noHolder(err) {
			l.log.Warn("the netlink socket is not kept", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(holdInterval):
		}
	}
}

// keep returns when the holder has ended.
func (l *Lease) keep(ctx context.Context, conn *kernel.Conn) error {
	l.mu.Lock()
	// A socket in another holder is an earlier weft's.
	old, err := l.connect()
	c := l.conn
	l.mu.Unlock()
	if err != nil {
		return err
	}
	if old != nil {
		_ = old.Close()
	}
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.conn = nil
		_ = c.Close()
	}()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	file, err := conn.File()
	if err != nil {
		return err
	}
	_, _, err = c.WriteMsgUnix([]byte{leaseKeeps}, unix.UnixRights(int(file.Fd())), nil) //nolint:gosec // a descriptor
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	l.log.Info("a holder keeps the netlink socket", "socket", l.socket)
	if _, _, err = receiveFile(c); ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
