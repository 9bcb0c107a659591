package nri_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

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
	stop  func()
}

func newPeer(t *testing.T) *peer {
	t.Helper()
	return newPeerAt(t, filepath.Join(t.TempDir(), "nri.sock"))
}

func newPeerAt(t *testing.T, socket string) *peer {
	t.Helper()
	_ = os.Remove(socket)
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{socket: socket, conns: make(chan net.Conn), stop: func() { _ = l.Close() }}
	t.Cleanup(p.stop)
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
	if err != nil {
		t.Fatal(err)
	}
	registered := make(chan struct{})
	server.RegisterService("nri.pkg.api.v1alpha1.Runtime", &ttrpc.ServiceDesc{Methods: map[string]ttrpc.Method{
		"RegisterPlugin": func(_ context.Context, decode func(any) error) (any, error) {
			defer close(registered)
			return &api.Empty{}, decode(&api.RegisterPluginRequest{})
		},
	}})
	listener, err := mux.Listen(multiplex.RuntimeServiceConn)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := mux.Open(multiplex.PluginServiceConn)
	if err != nil {
		t.Fatal(err)
	}
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
	if err := l.call(t.Context(), "Configure", &api.ConfigureRequest{RuntimeName: "peer"}); err != nil {
		t.Fatal(err)
	}
	if err := l.call(t.Context(), "Synchronize", &api.SynchronizeRequest{Pods: pods}); err != nil {
		t.Fatal(err)
	}
}
