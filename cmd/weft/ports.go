package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"
)

// Flags of the addresses.
const (
	flagMetrics = "metrics-bind-address"
	flagHealthz = "healthz-bind-address"
)

// serveRetry is kube-proxy's time until a server that failed is tried again.
const serveRetry = 5 * time.Second

// listeners are what listens already, by flag.
type listeners map[string]net.Listener

// endpoint is one HTTP server.
type endpoint struct {
	flag    string
	address string
	// reason is that of the event when it fails, kube-proxy's.
	reason string
}

func (e *endpoints) servers() []endpoint {
	return []endpoint{
		{flagMetrics, e.metrics, "FailedToStartMetricServer"},
		{flagHealthz, e.healthz, "FailedToStartProxierHealthcheck"},
	}
}

// listen takes the addresses. It is called before anything runs, so a wrong one is
// an error of the command, and nothing has changed; but after the socket is taken,
// as who starts weft twice should hear of that first. One that is taken, or not
// there yet, is such an error only with hardFail: else keep tries it again. They are
// free again when ctx ends. A daemon that stands by has to do without: another has
// them.
func (e *endpoints) listen(ctx context.Context) error {
	e.bound = make(listeners)
	ours := make(map[string]bool)
	for _, s := range e.servers() {
		if s.address == "" {
			continue
		}
		l, err := bindHTTP(ctx, s.address)
		if err != nil && (e.hardFail || ours[s.address] || !mayPass(err)) {
			return fmt.Errorf("--%s: %w (an empty address turns it off)", s.flag, err)
		}
		if err != nil {
			continue
		}
		ours[s.address] = true
		e.bound[s.flag] = l
		context.AfterFunc(ctx, func() { _ = l.Close() })
	}
	return nil
}

// mayPass reports whether an address may be free later: the kernel refused it, and
// not the parser.
func mayPass(err error) bool {
	return errors.As(err, new(syscall.Errno))
}

// keep serves until ctx ends. A failure is an event of the Node, and tried again
// after a while, or the end with hardFail.
func (e *endpoints) keep(ctx context.Context, s endpoint, handler http.Handler) error {
	retry := e.retry
	if retry == 0 {
		retry = serveRetry
	}
	told := ""
	for l := e.bound[s.flag]; ; l = nil {
		err := serveHTTP(ctx, l, s.address, handler)
		if ctx.Err() != nil {
			return nil
		}
		if told != err.Error() {
			told = err.Error()
			e.failed(s, err, retry)
		}
		if e.hardFail {
			return fmt.Errorf("--%s: %w", s.flag, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retry):
		}
	}
}

// failed tells of a server that does not serve.
func (e *endpoints) failed(s endpoint, err error, retry time.Duration) {
	if e.log != nil {
		e.log.Error("an HTTP server failed", "flag", "--"+s.flag, "address", s.address, "error", err.Error(), "fatal", e.hardFail, "retry", retry)
	}
	if e.events != nil {
		e.events.Node("Warning", s.reason, err.Error())
	}
}

// serveHTTP serves until ctx ends or the server fails; without a listener it takes
// the address.
func serveHTTP(ctx context.Context, l net.Listener, address string, handler http.Handler) error {
	if l == nil {
		var err error
		if l, err = bindHTTP(ctx, address); err != nil {
			return err
		}
	}
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	// The process is about to end; nobody waits for a scrape.
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	return fmt.Errorf("serve http on %s: %w", l.Addr(), srv.Serve(l))
}
