package main

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weft-proxy/weft/aggregator/server"
)

// portPatience is how long the port of a weft that ends is waited for: the kernel
// closes the files of a process that was killed one after the other.
const portPatience = time.Second

// standBy waits until no other weft has the socket, and then runs the daemon.
func standBy(ctx context.Context, cfg server.Config, run func(*server.Server) error, held ...io.Closer) error {
	srv, err := server.Await(ctx, cfg)
	if err == nil {
		return run(srv)
	}
	for _, c := range held {
		_ = c.Close()
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// begin starts what may only run once the socket is this daemon's: its frontend
// would publish to the other weft, and the ports are that one's too.
func (d *daemon) begin(ctx context.Context, g *errgroup.Group, standby bool, start func() error) error {
	if !standby {
		return start()
	}
	g.Go(func() error {
		select {
		case <-d.listening:
			return start()
		case <-ctx.Done():
			return nil
		}
	})
	return nil
}

// bindHTTP listens on a TCP address, and waits a moment where it is taken.
func bindHTTP(ctx context.Context, address string) (net.Listener, error) {
	for deadline := time.Now().Add(portPatience); ; {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(deadline) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(portPatience / 20):
		}
	}
}
