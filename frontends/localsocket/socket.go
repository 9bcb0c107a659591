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
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/reflection"
)

// drain is how long a reader has to end when the process ends.
const drain = 100 * time.Millisecond

// Serve serves what register registers on a Unix socket, until ctx ends. Only the owner's user and group may connect (mode 0660). A socket of
// an earlier process is replaced; if a process answers on it, Serve returns an error.
func Serve(ctx context.Context, path string, register func(grpc.ServiceRegistrar)) error {
	l, err := listen(ctx, path)
	if err != nil {
		return fmt.Errorf("offer the local state on %s: %w", path, err)
	}
	srv := grpc.NewServer()
	register(srv)
	reflection.Register(srv)
	stop := context.AfterFunc(ctx, func() {
		// Watches end only with their connections.
		t := time.AfterFunc(drain, srv.Stop)
		srv.GracefulStop()
		t.Stop()
	})
	defer stop()
	if err := srv.Serve(l); err != nil && ctx.Err() == nil {
		return fmt.Errorf("offer the local state on %s: %w", path, err)
	}
	return nil
}

func listen(ctx context.Context, path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, err
	}
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = c.Close()
		return nil, errors.New("another process answers there: run only one frontend, or give it another socket")
	case errors.Is(err, syscall.ECONNREFUSED):
		// A process that was killed has left it.
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o660); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}
