package nri_test

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/net/multiplex"
	"github.com/containerd/ttrpc"
	"google.golang.org/protobuf/proto"
)

// peer is a runtime that does what a test wants with each connection.
type peer struct {
	socket string
	// conns has the connections of the plugin.
	conns chan net.Conn
}

func newPeer(t *testing.T) *peer {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "nri.sock")
	l, err := net.Listen("unix", socket)
	must(t, err)
	p := &peer{socket: socket, conns: make(chan net.Conn)}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			select {
			case p.conns <- c:
			case <-t.Context().Done():
				_ = c.Close()
				return
			}
		}
	}()
	return p
}

// link is a connection that speaks NRI.
type link struct {
	net.Conn
	client *ttrpc.Client
}

// accept waits for a connection of the plugin, and for its registration.
func (p *peer) accept(t *testing.T) *link {
	t.Helper()
	l := &link{Conn: p.acceptRaw(t)}
	// Frames for a connection that is not open yet would be lost.
	mux := multiplex.Multiplex(l.Conn, multiplex.WithBlockedRead())
	t.Cleanup(func() { _ = mux.Close() })
	server, err := ttrpc.NewServer()
	must(t, err)
	registered := make(chan struct{})
	server.RegisterService("nri.pkg.api.v1alpha1.Runtime", &ttrpc.ServiceDesc{Methods: map[string]ttrpc.Method{
		"RegisterPlugin": func(_ context.Context, decode func(any) error) (any, error) {
			defer close(registered)
			return &api.Empty{}, decode(&api.RegisterPluginRequest{})
		},
	}})
	listener, err := mux.Listen(multiplex.RuntimeServiceConn)
	must(t, err)
	conn, err := mux.Open(multiplex.PluginServiceConn)
	must(t, err)
	mux.Unblock()
	go func() { _ = server.Serve(t.Context(), listener) }()
	t.Cleanup(func() { _ = server.Close() })
	wait(t, "the registration", registered)
	l.client = ttrpc.NewClient(conn)
	t.Cleanup(func() { _ = l.client.Close() })
	return l
}

// acceptRaw waits for a connection of the plugin.
func (p *peer) acceptRaw(t *testing.T) net.Conn {
	t.Helper()
	select {
	case c := <-p.conns:
		t.Cleanup(func() { _ = c.Close() })
		return c
	case <-t.Context().Done():
		t.Fatal("no connection")
		return nil
	}
}

// call calls a method of the plugin.
func (l *link) call(ctx context.Context, method string, req proto.Message) error {
	return l.client.Call(ctx, "nri.pkg.api.v1alpha1.Plugin", method, req, &api.Empty{})
}

// synchronize reports pods, all of which run.
func (l *link) synchronize(t *testing.T, pods ...*api.PodSandbox) {
	t.Helper()
	must(t, l.call(t.Context(), "Configure", &api.ConfigureRequest{RuntimeName: "peer"}))
	must(t, l.call(t.Context(), "Synchronize", &api.SynchronizeRequest{Pods: pods}))
}

// connected returns a runtime to which a plugin is connected, and has received pods.
func connected(t *testing.T, bound time.Duration, pods ...*api.PodSandbox) (*peer, *lab, *link) {
	t.Helper()
	p := newPeer(t)
	l := newLab(t, p.socket, bound)
	c := p.accept(t)
	c.synchronize(t, pods...)
	wait(t, "the first report", l.plugin.Synced())
	return p, l, c
}
