package nri

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/containerd/nri/pkg/net/multiplex"
	"github.com/containerd/ttrpc"

	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/policy/nri/nripb"
)

const (
	// registerTimeout bounds the registration.
	registerTimeout = 5 * time.Second
	// pluginName and pluginIndex identify the plugin. Those with a lower index are called
	// before it.
	pluginName  = "weft"
	pluginIndex = "90"
	// The names of the services of NRI.
	runtimeService = "nri.pkg.api.v1alpha1.Runtime"
	pluginService  = "nri.pkg.api.v1alpha1.Plugin"
)

// errDisconnected means that the runtime closed the connection, or has ended.
var errDisconnected = errors.New("the runtime closed the connection")

// session is one connection to the runtime.
type session struct {
	*Plugin

	mu sync.Mutex
	// closed is true after the connection has ended.
	closed bool
	// complete is true once the runtime has reported everything that runs.
	complete bool
	// wait bounds the wait for a commit.
	wait time.Duration
	// sandboxes are the parts of the first report that have arrived.
	sandboxes []*model.SandboxObject
}

// run connects, registers, and answers requests until the connection or ctx ends. It always
// returns an error.
func (s *session) run(ctx context.Context) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", s.cfg.Socket)
	if err != nil {
		return fmt.Errorf("connect to the container runtime: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	mux := multiplex.Multiplex(conn)
	defer mux.Close()
	defer s.close()
	listener, err := mux.Listen(multiplex.PluginServiceConn)
	if err != nil {
		return fmt.Errorf("serve requests of the container runtime: %w", err)
	}
	server, err := ttrpc.NewServer()
	if err != nil {
		return fmt.Errorf("serve requests of the container runtime: %w", err)
	}
	server.RegisterService(pluginService, &ttrpc.ServiceDesc{Methods: s.methods()})
	served := make(chan struct{})
	go func() {
		defer close(served)
		err := server.Serve(ctx, listener)
		if err == nil || errors.Is(err, ttrpc.ErrServerClosed) {
			err = errDisconnected
		}
		cancel(err)
	}()
	defer func() { _ = server.Close(); _ = listener.Close(); <-served }()
	outgoing, err := mux.Open(multiplex.RuntimeServiceConn)
	if err != nil {
		return fmt.Errorf("connect to the container runtime: %w", err)
	}
	client := ttrpc.NewClient(outgoing, ttrpc.WithOnClose(func() { cancel(errDisconnected) }))
	defer client.Close()
	if err := register(ctx, client); err != nil {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// register registers the plugin.
func register(ctx context.Context, client *ttrpc.Client) error {
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	req := &nripb.RegisterPluginRequest{PluginName: pluginName, PluginIndex: pluginIndex}
	if err := client.Call(ctx, runtimeService, "RegisterPlugin", req, &nripb.Empty{}); err != nil {
		return fmt.Errorf("register with the container runtime: %w", err)
	}
	return nil
}

// close ends the delivery of changes.
func (s *session) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// isComplete reports whether the runtime has reported everything that runs.
func (s *session) isComplete() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.complete
}
