package localsocket

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Methods of the service of the tests.
const (
	methodEcho  = "/test.Test/Echo"
	methodPanic = "/test.Test/Panic"
	methodWatch = "/test.Test/Watch"
	methodBreak = "/test.Test/Break"
)

// registerWith registers a service with calls that answer, panic, or go on until their
// connection ends, and calls end then.
func registerWith(end func()) func(grpc.ServiceRegistrar) {
	return func(r grpc.ServiceRegistrar) { r.RegisterService(newService(end), struct{}{}) }
}

func newService(end func()) *grpc.ServiceDesc {
	unary := func(name string, f func(*wrapperspb.StringValue) *wrapperspb.StringValue) grpc.MethodDesc {
		return grpc.MethodDesc{MethodName: name, Handler: func(srv any, ctx context.Context, decode func(any) error, around grpc.UnaryServerInterceptor) (any, error) {
			req := &wrapperspb.StringValue{}
			if err := decode(req); err != nil {
				return nil, err
			}
			return around(ctx, req, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/test.Test/" + name}, func(_ context.Context, req any) (any, error) {
				return f(req.(*wrapperspb.StringValue)), nil
			})
		}}
	}
	return &grpc.ServiceDesc{
		ServiceName: "test.Test", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{
			unary("Echo", func(s *wrapperspb.StringValue) *wrapperspb.StringValue { return s }),
			unary("Panic", func(*wrapperspb.StringValue) *wrapperspb.StringValue { panic("a bug") }),
		},
		Streams: []grpc.StreamDesc{
			{StreamName: "Break", ServerStreams: true, Handler: func(any, grpc.ServerStream) error { panic("another bug") }},
			{StreamName: "Watch", ServerStreams: true, Handler: func(_ any, s grpc.ServerStream) error {
				defer end()
				for {
					if err := s.SendMsg(wrapperspb.String(strings.Repeat("x", 1000))); err != nil {
						return err
					}
				}
			}},
		},
	}
}

// server is a running server.
type server struct {
	path string
	stop func()
}

// start runs a server until the test ends, and waits until it answers.
func start(t *testing.T, cfg Config) *server {
	t.Helper()
	if cfg.Path == "" {
		cfg.Path = filepath.Join(t.TempDir(), "test.sock")
	}
	if cfg.Register == nil {
		cfg.Register = registerWith(func() {})
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, cfg) }()
	s := &server{path: cfg.Path, stop: sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(3 * time.Minute):
			t.Error("the server does not end")
		}
	})}
	t.Cleanup(s.stop)
	if err := s.echo(s.connect(t), "x"); err != nil {
		t.Fatal(err)
	}
	return s
}

// connect returns a client, which connects when it is used.
func (s *server) connect(t *testing.T) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient("unix:"+s.path, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// echo calls the server.
func (s *server) echo(c *grpc.ClientConn, text string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	return c.Invoke(ctx, methodEcho, wrapperspb.String(text), &wrapperspb.StringValue{})
}

func TestPanics(t *testing.T) {
	var log bytes.Buffer
	s := start(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	c := s.connect(t)
	err := c.Invoke(t.Context(), methodPanic, wrapperspb.String(""), &wrapperspb.StringValue{})
	if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "a bug") {
		t.Errorf("error %v", err)
	}
	stream, err := c.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, methodBreak)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.RecvMsg(&wrapperspb.StringValue{}); status.Code(err) != codes.Internal {
		t.Errorf("error %v", err)
	}
	if err := s.echo(c, "x"); err != nil {
		t.Error(err)
	}
	s.stop()
	for _, want := range []string{"method=" + methodPanic, `panic="a bug"`, "method=" + methodBreak, "server_test.go"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, &log)
		}
	}
}

// TestLimits refuses requests that no reader sends.
func TestLimits(t *testing.T) {
	s := start(t, Config{})
	c := s.connect(t)
	if err := s.echo(c, strings.Repeat("x", maxRequest/2)); err != nil {
		t.Error(err)
	}
	if err := s.echo(c, strings.Repeat("x", maxRequest+1)); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a large request: %v", err)
	}
	// Further calls wait.
	ctx, cancel := context.WithCancel(t.Context())
	for range maxStreams {
		if _, err := c.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, methodWatch); err != nil {
			t.Fatal(err)
		}
	}
	short, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	if err := c.Invoke(short, methodEcho, wrapperspb.String(""), &wrapperspb.StringValue{}); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("one call more than %d: %v", maxStreams, err)
	}
	cancel()
	if err := s.echo(c, "x"); err != nil {
		t.Error(err)
	}
}

// TestSilentReaders disconnects readers that do not speak, and serves others afterwards.
func TestSilentReaders(t *testing.T) {
	s := start(t, Config{Patience: 200 * time.Millisecond})
	var silent []net.Conn
	for range maxConnections {
		c, err := net.Dial("unix", s.path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		silent = append(silent, c)
	}
	// It waits until one of the others is disconnected.
	if err := s.echo(s.connect(t), "x"); err != nil {
		t.Error(err)
	}
	for _, c := range silent {
		_ = c.SetReadDeadline(time.Now().Add(3 * time.Minute))
		if _, err := io.Copy(io.Discard, c); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Error(err)
		}
	}
}

// TestStuckReader disconnects a reader that does not read, and does not answer.
func TestStuckReader(t *testing.T) {
	ended := make(chan struct{})
	s := start(t, Config{Patience: time.Second, Register: registerWith(func() { close(ended) })})
	c := make(chan net.Conn, 1)
	reader, err := grpc.NewClient("passthrough:x", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			conn, err := net.Dial("unix", s.path)
			stuck := &stuckConn{Conn: conn, stop: make(chan struct{}), release: make(chan struct{})}
			select {
			case c <- stuck:
			default:
			}
			return stuck, err
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := s.echo(reader, "x"); err != nil {
		t.Fatal(err)
	}
	stuck := (<-c).(*stuckConn)
	defer close(stuck.release)
	watch, err := reader.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, methodWatch)
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.RecvMsg(&wrapperspb.StringValue{}); err != nil {
		t.Fatal(err)
	}
	close(stuck.stop)
	select {
	case <-ended:
	case <-time.After(3 * time.Minute):
		t.Error("the watch goes on")
	}
}

// stuckConn is a connection that can stop to read and write.
type stuckConn struct {
	net.Conn
	stop, release chan struct{}
}

// Read implements net.Conn.
func (c *stuckConn) Read(b []byte) (int, error) {
	select {
	case <-c.stop:
		<-c.release
	default:
	}
	return c.Conn.Read(b)
}

// Write implements net.Conn.
func (c *stuckConn) Write(b []byte) (int, error) {
	select {
	case <-c.stop:
		return len(b), nil
	default:
		return c.Conn.Write(b)
	}
}

// TestGarbage sends what is not HTTP/2.
func TestGarbage(t *testing.T) {
	s := start(t, Config{Patience: 200 * time.Millisecond})
	for _, garbage := range []string{"GET / HTTP/1.1\r\n\r\n", strings.Repeat("\xff", 1<<16), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + strings.Repeat("\xff", 100)} {
		c, err := net.Dial("unix", s.path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write([]byte(garbage))
		_ = c.SetReadDeadline(time.Now().Add(3 * time.Minute))
		if _, err := io.Copy(io.Discard, c); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%.20q: %v", garbage, err)
		}
		_ = c.Close()
	}
	if err := s.echo(s.connect(t), "x"); err != nil {
		t.Error(err)
	}
}

// TestEndWithReaders ends although a reader does not read its watch.
func TestEndWithReaders(t *testing.T) {
	s := start(t, Config{})
	if _, err := s.connect(t).NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, methodWatch); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	s.stop()
	if took := time.Since(began); took > time.Minute {
		t.Errorf("the end took %s", took)
	}
}
