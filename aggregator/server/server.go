package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

const (
	// DefaultSocket is the default path of the socket.
	DefaultSocket = "/run/weft/weft.sock"
	// MaxMessage is the largest received message, in bytes. Larger messages fail with
	// RESOURCE_EXHAUSTED; large snapshots come in parts.
	MaxMessage = 16 << 20
	// calls of a connection
	maxStreams = 256
	// window and connWindow are the unread bytes of a call and of a connection, beside the messages
	// being read.
	window     = 64 << 10
	connWindow = 1 << 20
	// DefaultKeepaliveTime is the default of Config.KeepaliveTime.
	DefaultKeepaliveTime = 30 * time.Second
	// DefaultKeepaliveTimeout is the default of Config.KeepaliveTimeout.
	DefaultKeepaliveTimeout = 20 * time.Second
	// gRPC's minimum for both
	minKeepalive = time.Second
	// for calls to end at shutdown
	stopGrace = 2 * time.Second
)

// Config describes a Server.
type Config struct {
	// empty means DefaultSocket
	Socket string
	// required; the caller calls its Run
	Aggregator *aggregator.Aggregator
	// optional; becomes the connection of publishers in the same process
	Local *Local
	// lists and deletes conntrack entries; if nil, the service Flows fails with UNIMPLEMENTED
	Flows FlowTable
	// nil allows only administrators, unlike in aggregator.Config; Serve follows its changes
	Access *access.Control
	// A connection silent for KeepaliveTime is pinged, and closed without an answer within
	// KeepaliveTimeout. At least a second each; 0 means the defaults.
	KeepaliveTime, KeepaliveTimeout time.Duration
	// nil discards
	Logger *slog.Logger
	// Limits of concurrent connections, in total and for one uid. 0 means DefaultMaxConnections, or
	// three quarters of the process's descriptor limit if less; and DefaultMaxConnectionsPerUser,
	// or half of MaxConnections. Beyond the limits, calls get RESOURCE_EXHAUSTED.
	MaxConnections, MaxConnectionsPerUser int
	// time until a connection must speak HTTP/2; 0 means DefaultHandshakeTimeout
	HandshakeTimeout time.Duration
}

func (c *Config) setDefaults() {
	c.Socket = cmp.Or(c.Socket, DefaultSocket)
	c.KeepaliveTime, c.KeepaliveTimeout = cmp.Or(c.KeepaliveTime, DefaultKeepaliveTime), cmp.Or(c.KeepaliveTimeout, DefaultKeepaliveTimeout)
	c.HandshakeTimeout = cmp.Or(c.HandshakeTimeout, DefaultHandshakeTimeout)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}

func (c *Config) validate() error {
	var errs []error
	if c.Aggregator == nil {
		errs = append(errs, errors.New("no Aggregator"))
	}
	if c.KeepaliveTime < minKeepalive || c.KeepaliveTimeout < minKeepalive {
		errs = append(errs, fmt.Errorf("got KeepaliveTime %v, KeepaliveTimeout %v: want at least %v each", c.KeepaliveTime, c.KeepaliveTimeout, minKeepalive))
	}
	return errors.Join(errs...)
}

// Server answers gRPC calls for an aggregator on a Unix socket.
type Server struct {
	cfg      Config
	listener net.Listener
	rival    *rival
	grpc     *grpc.Server
	health   *health.Server
	streams  *streams
	changed  <-chan struct{}
	// a configuration has named the socket's group
	given bool
}

// Listen makes the socket (mode 0660) and its server; a missing directory is made with mode 0750.
// Callers can connect; Serve answers them. A lock file beside the socket excludes other servers,
// and stays after Close.
//
// Possible errors: ErrInUse, ErrNotSocket, ErrForeignSocket, trusted.ErrUnsafe and trusted.ErrLink
// (another user could change the directory or the lock), errors of an invalid Config, of
// access.Open and of the file system.
func Listen(cfg Config) (*Server, error) {
	s, err := open(cfg)
	if errors.Is(err, ErrInUse) {
		claim(cmp.Or(cfg.Socket, DefaultSocket))
	}
	return s, err
}

func open(cfg Config) (*Server, error) {
	cfg.setDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("configure server: %w", err)
	}
	if cfg.Access == nil {
		c, err := access.Open(access.Options{Logger: cfg.Logger})
		if err != nil {
			return nil, err
		}
		cfg.Access = c
	}
	l, err := listen(cfg.Socket)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, listener: l, rival: newRival(l.lock, time.Now), health: health.NewServer(), streams: newStreams(cfg.Access), changed: cfg.Access.Changed()}
	if err := s.giveSocket(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	in := &interceptor{access: cfg.Access, streams: s.streams, decoder: newDecoder(cfg.Aggregator), turns: newCallTurns(), log: cfg.Logger}
	s.grpc = grpc.NewServer(
		grpc.Creds(peerCredentials{insecure.NewCredentials(), cfg.Access, newBudget()}),
		grpc.ForceServerCodecV2(newRequestCodec()),
		grpc.MaxRecvMsgSize(MaxMessage),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.InitialWindowSize(window),
		grpc.InitialConnWindowSize(connWindow),
		grpc.MaxHeaderListSize(maxHeaders),
		// countedConn has the buffer.
		grpc.ReadBufferSize(0),
		grpc.InTapHandle(countCall),
		grpc.WriteBufferSize(64<<10),
		grpc.ConnectionTimeout(cfg.HandshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: cfg.KeepaliveTime, Timeout: cfg.KeepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	)
	impl := &service{agg: cfg.Aggregator, pacer: newPacer(cfg.Access), reads: &reads{byPublisher: make(map[string]*readShare)}, flows: cfg.Flows, tables: &servedTables{owners: make(map[string][]*tableOwner)}, partial: newBudget(), log: cfg.Logger}
	if cfg.Local != nil {
		cfg.Local.in, cfg.Local.impl = in, impl
	}
	services := registrar{s.grpc, in}
	weftv1.RegisterPublisherServer(services, impl)
	weftv1.RegisterInspectServer(services, impl)
	weftv1.RegisterFlowsServer(services, impl)
	weftv1.RegisterHistoryServer(services, impl)
	weftv1.RegisterTablesServer(services, impl)
	weftv1.RegisterAdminServer(services, impl)
	healthv1.RegisterHealthServer(services, s.health)
	s.setHealth(healthv1.HealthCheckResponse_NOT_SERVING)
	reflection.Register(services)
	return s, nil
}

func (s *Server) setHealth(status healthv1.HealthCheckResponse_ServingStatus) {
	for _, service := range []string{"", weftv1.Publisher_ServiceDesc.ServiceName, weftv1.Inspect_ServiceDesc.ServiceName, weftv1.Flows_ServiceDesc.ServiceName, weftv1.History_ServiceDesc.ServiceName, weftv1.Tables_ServiceDesc.ServiceName, weftv1.Admin_ServiceDesc.ServiceName} {
		s.health.SetServingStatus(service, status)
	}
}

// Serve answers calls until ctx ends, and then returns nil. Aggregator.Run must be called with the
// same ctx: Serve waits for the end of Run, to acknowledge the last commits. The health service
// reports SERVING while the aggregator commits updates.
func (s *Server) Serve(ctx context.Context) error {
	done := make(chan error, 1)
	limits := newConnections(s.cfg.MaxConnections, s.cfg.MaxConnectionsPerUser, s.cfg.Logger)
	go func() { done <- s.grpc.Serve(&limitedListener{s.listener, limits}) }()
	ready := s.cfg.Aggregator.Ready()
	for {
		select {
		case <-ready:
			s.setHealth(healthv1.HealthCheckResponse_SERVING)
			ready = nil
		case <-s.changed:
			s.changed = s.cfg.Access.Changed()
			s.reloaded()
		case <-ctx.Done():
			s.stop()
			return nil
		case err := <-done:
			return fmt.Errorf("serve on %s: %w", s.cfg.Socket, err)
		}
	}
}

func (s *Server) stop() {
	s.health.Shutdown()
	select {
	case <-s.cfg.Aggregator.Stopped():
	case <-time.After(aggregator.DefaultDrain + stopGrace):
	}
	grace := time.AfterFunc(stopGrace, s.grpc.Stop)
	defer grace.Stop()
	s.grpc.GracefulStop()
}

// Close ends all calls and the socket at once. It is for a Server without Serve.
func (s *Server) Close() error {
	s.grpc.Stop()
	return s.listener.Close()
}
