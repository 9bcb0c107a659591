package nri

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	nrinet "github.com/containerd/nri/pkg/net"
	"github.com/containerd/nri/pkg/net/multiplex"
	"github.com/containerd/ttrpc"

	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/policy/nri/nripb"
)

const (
	// maxChanges may wait for delivery.
	maxChanges = 64
	// Plugins with a lower index are called first.
	pluginName     = "weft"
	pluginIndex    = "90"
	runtimeService = "nri.pkg.api.v1alpha1.Runtime"
	pluginService  = "nri.pkg.api.v1alpha1.Plugin"
)

var (
	// The runtime closed the connection, or has ended.
	errDisconnected = errors.New("the runtime closed the connection")
	errNotSynced    = errors.New("the runtime did not report its pods in time")
	errBusy         = fmt.Errorf("more than %d changes wait for delivery", maxChanges)
)

type session struct {
	*Plugin
	// Delivery may take longer than the runtime waits.
	changes chan delivery
	// fail ends the session; the first reason counts.
	fail context.CancelCauseFunc

	complete atomic.Bool
	// The limit until a request is answered.
	wait atomic.Int64

	mu     sync.Mutex
	report report // of the first report
}

type delivery struct {
	apply     func(*model.Model)
	delivered chan<- (<-chan struct{}) // receives the channel that a commit closes
}

// run works until the connection or ctx ends, and always returns an error.
func (s *session) run(ctx context.Context) error {
	var d net.Dialer
	trunk, err := d.DialContext(ctx, "unix", s.cfg.Socket)
	if err != nil {
		return fmt.Errorf("connect to the container runtime: %w", err)
	}
	ctx, s.fail = context.WithCancelCause(ctx)
	defer s.fail(nil)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		defer s.counters.connected.Store(false)
		s.deliver(ctx)
	})
	defer s.fail(nil)

	// Frames for an unopened connection would be lost.
	mux := multiplex.Multiplex(checkFrames(trunk, s.fail), multiplex.WithReadQueueLength(maxFrames), multiplex.WithBlockedRead())
	defer mux.Close()
	incoming, err := mux.Open(multiplex.PluginServiceConn)
	if err != nil {
		return fmt.Errorf("serve requests of the container runtime: %w", err)
	}
	outgoing, err := mux.Open(multiplex.RuntimeServiceConn)
	if err != nil {
		return fmt.Errorf("connect to the container runtime: %w", err)
	}
	mux.Unblock()
	server, err := ttrpc.NewServer()
	if err != nil {
		return fmt.Errorf("serve requests of the container runtime: %w", err)
	}
	server.RegisterService(pluginService, &ttrpc.ServiceDesc{Methods: s.methods()})
	listener := nrinet.NewConnListener(checkRequests(incoming, s.fail))
	wg.Go(func() {
		err := server.Serve(ctx, listener)
		if err == nil || errors.Is(err, ttrpc.ErrServerClosed) {
			err = errDisconnected
		}
		s.fail(err)
	})
	defer func() { _ = server.Close(); _ = listener.Close() }()
	client := ttrpc.NewClient(checkResponses(outgoing, s.fail), ttrpc.WithOnClose(func() { s.fail(errDisconnected) }))
	defer client.Close()
	defer time.AfterFunc(s.cfg.SyncTimeout, s.expire).Stop()
	req := &nripb.RegisterPluginRequest{PluginName: pluginName, PluginIndex: pluginIndex}
	if err := client.Call(ctx, runtimeService, "RegisterPlugin", req, &nripb.Empty{}); err != nil {
		return fmt.Errorf("register with the container runtime: %w", cmp.Or(context.Cause(ctx), err))
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

func (s *session) expire() {
	if !s.complete.Load() {
		s.fail(errNotSynced)
	}
}

func (s *session) deliver(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-s.changes:
			if ctx.Err() != nil {
				return
			}
			c.delivered <- s.apply(c.apply)
		}
	}
}

// enqueue ends the session if there are too many changes. The next session begins with a complete
// report.
func (s *session) enqueue(apply func(*model.Model)) (delivered <-chan (<-chan struct{})) {
	out := make(chan (<-chan struct{}), 1)
	select {
	case s.changes <- delivery{apply: apply, delivered: out}:
	default:
		s.fail(errBusy)
	}
	return out
}
