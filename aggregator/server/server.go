package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

const (
	// DefaultSocket is where the aggregator listens unless told otherwise.
	DefaultSocket = "/run/weft/weft.sock"
	// MaxMessage is the greatest message that is received, in bytes. Larger
	// ones fail with RESOURCE_EXHAUSTED; large snapshots come in parts.
	MaxMessage = 16 << 20
	// maxStreams is the number of calls at a time on one connection.
	maxStreams = 256
	// window is the flow control window of a stream and of a connection: a
	// part of a snapshot never waits for a window update.
	window = 8 << 20
	// stopGrace is how long calls may take to end at shutdown.
	stopGrace = 2 * time.Second
)

// Config describes a Server.
type Config struct {
	// Socket is the path; empty means DefaultSocket.
	Socket string
	// Aggregator is required; its Run is somebody else's to call.
	Aggregator *aggregator.Aggregator
	// Logger gets refused callers and panics; nil discards.
	Logger *slog.Logger
}

// Server is a socket with an aggregator behind it.
type Server struct {
	cfg      Config
	listener *net.UnixListener
	grpc     *grpc.Server
	health   *health.Server
}

// Listen makes the socket (mode 0660, in a directory of mode 0750 if it has to
// make one) and the server on it. Callers can connect from now on; they are
// served by Serve.
//
// Possible errors: ErrInUse, ErrNotSocket, ErrForeignSocket, those of the file
// system.
func Listen(cfg Config) (*Server, error) {
	if cfg.Socket == "" {
		cfg.Socket = DefaultSocket
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Aggregator == nil {
		return nil, errors.New("configure server: Aggregator is missing")
	}
	l, err := listen(cfg.Socket)
	if err != nil {
		return nil, err
	}
	uid := uint32(os.Geteuid()) //nolint:gosec // a uid
	in := &interceptor{auth: &authorizer{uid: uid, log: cfg.Logger}, log: cfg.Logger}
	s := &Server{cfg: cfg, listener: l, health: health.NewServer()}
	s.grpc = grpc.NewServer(
		grpc.Creds(peerCredentials{}),
		grpc.UnaryInterceptor(in.unary),
		grpc.StreamInterceptor(in.stream),
		grpc.MaxRecvMsgSize(MaxMessage),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.InitialWindowSize(window),
		grpc.InitialConnWindowSize(window),
		grpc.ReadBufferSize(256<<10),
		grpc.WriteBufferSize(64<<10),
		grpc.ConnectionTimeout(10*time.Second),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 20 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	)
	weftv1.RegisterAggregatorServer(s.grpc, &service{agg: cfg.Aggregator, uid: uid, log: cfg.Logger})
	healthv1.RegisterHealthServer(s.grpc, s.health)
	s.setHealth(healthv1.HealthCheckResponse_NOT_SERVING)
	reflection.Register(s.grpc)
	return s, nil
}

// Socket returns the path that the server listens on.
func (s *Server) Socket() string { return s.cfg.Socket }

// setHealth sets the status of the whole server and of the service.
func (s *Server) setHealth(status healthv1.HealthCheckResponse_ServingStatus) {
	s.health.SetServingStatus("", status)
	s.health.SetServingStatus(weftv1.Aggregator_ServiceDesc.ServiceName, status)
}

// Serve answers calls until ctx ends, and returns nil then. Updates that the
// aggregator commits while it stops are still acknowledged. The health service
// says SERVING from the time at which the aggregator commits.
func (s *Server) Serve(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- s.grpc.Serve(s.listener) }()
	ready := s.cfg.Aggregator.Ready()
	for {
		select {
		case <-ready:
			s.setHealth(healthv1.HealthCheckResponse_SERVING)
			ready = nil
		case <-ctx.Done():
			s.stop()
			return nil
		case err := <-done:
			return fmt.Errorf("serve on %s: %w", s.cfg.Socket, err)
		}
	}
}

// stop ends all calls, those that wait for a commit after it.
func (s *Server) stop() {
	s.health.Shutdown()
	deadline := time.NewTimer(aggregator.DefaultDrain + stopGrace)
	defer deadline.Stop()
	select {
	case <-s.cfg.Aggregator.Stopped():
	case <-deadline.C:
	}
	graceful := make(chan struct{})
	go func() {
		s.grpc.GracefulStop()
		close(graceful)
	}()
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-graceful:
	case <-grace.C:
		s.grpc.Stop()
		<-graceful
	}
}

// Close ends everything at once. It is for a Server that is not served.
func (s *Server) Close() error {
	s.grpc.Stop()
	return s.listener.Close()
}
