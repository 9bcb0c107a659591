package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// listeners are what listens already, by address.
type listeners map[string]net.Listener

// listen takes the addresses. It is called before anything runs, so a wrong or
// taken one is an error of the command, and nothing has changed; but after the
// socket is taken, as who starts weft twice should hear of that first. They are
// free again when ctx ends. A daemon that stands by has to do without: another has
// them.
func (e *endpoints) listen(ctx context.Context) error {
	e.bound = make(listeners)
	for _, a := range []struct{ flag, address string }{{"metrics-bind-address", e.metrics}, {"healthz-bind-address", e.healthz}} {
		if a.address == "" {
			continue
		}
		l, err := bindHTTP(ctx, a.address)
		if err != nil {
			return fmt.Errorf("--%s: %w (an empty address turns it off)", a.flag, err)
		}
		e.bound[a.address] = l
		context.AfterFunc(ctx, func() { _ = l.Close() })
	}
	return nil
}

// serveHTTP adds a server to g.
func serveHTTP(ctx context.Context, g *errgroup.Group, l net.Listener, handler http.Handler) {
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	g.Go(func() error {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) && ctx.Err() == nil {
			return fmt.Errorf("serve http on %s: %w", l.Addr(), err)
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		// The process is about to end; nobody waits for a scrape. The listener may
		// be closed already: see listen.
		if err := srv.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
}
