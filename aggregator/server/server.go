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
	// DefaultSocket is where the aggregator listens unless told otherwise.
	DefaultSocket = "/run/weft/weft.sock"
	// MaxMessage is the greatest message that is received, in bytes. Larger
	// ones fail with RESOURCE_EXHAUSTED; large snapshots come in parts.
	MaxMessage = 16 << 20
	// maxStreams is the number of calls at a time on one connection.
	maxStreams = 256
	// window is the flow control window of a stream: what the daemon holds of a
	// caller that sends faster than it is read from, beside the message that is
	// being read. connWindow is that of a connection.
	window     = 64 << 10
	connWindow = 1 << 20
	// DefaultKeepaliveTime is how long a connection may be silent before it is pinged.
	DefaultKeepaliveTime = 30 * time.Second
	// DefaultKeepaliveTimeout is how long the peer may take to answer a ping.
	DefaultKeepaliveTimeout = 20 * time.Second
	// minKeepalive is the shortest of either that gRPC accepts.
	minKeepalive = time.Second
	// stopGrace is how long calls may take to end at shutdown.
	stopGrace = 2 * time.Second
)

// Config describes a Server.
type Config struct {
	// Socket is the path; empty means DefaultSocket.
	Socket string
	// Aggregator is required; its Run is somebody else's to call.
	Aggregator *aggregator.Aggregator
	// Local, where it is set, becomes the connection of publishers in the same process.
	Local *Local
	// Flows lists and deletes conntrack entries; nil means that the service Flows fails with
	// UNIMPLEMENTED.
	Flows FlowTable
	// Access decides who may call. nil means root and the daemon's own user, other
	// than in aggregator.Config. Serve follows its changes.
	Access *access.Control
	// A connection that was silent for KeepaliveTime is pinged, and closed if there
	// is no answer within KeepaliveTimeout. At least a second each; 0 means
	// DefaultKeepaliveTime and DefaultKeepaliveTimeout.
	KeepaliveTime, KeepaliveTimeout time.Duration
	// Logger gets refused callers and panics; nil discards.
	Logger *slog.Logger
	// MaxConnections is the number of connections at a time; 0 means
	// DefaultMaxConnections, or three quarters of the descriptors that the
	// process may have if that is less. MaxConnectionsPerUser is that of one
	// uid; 0 means DefaultMaxConnectionsPerUser, or half of MaxConnections.
	// Calls on a connection beyond that are refused with RESOURCE_EXHAUSTED.
	MaxConnections, MaxConnectionsPerUser int
	// Register, where it is set, registers further services on the same socket. It
	// is called once, when the server is made, and its services are listed by
	// reflection. They are for reading only: every caller who may call at all may call
	// them, with the same credentials, under the same limits of connections and
	// streams, but without the rights and rates that publishers have. A panic in one
	// of their handlers ends that call alone.
	Register func(grpc.ServiceRegistrar)
	// HandshakeTimeout is how long a connection may take until it speaks
	// HTTP/2; 0 means DefaultHandshakeTimeout.
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
	// changed is closed by a change of the configuration since it was last
	// followed.
	changed <-chan struct{}
	// given is true once the socket has been another group's.
	given bool
}

// Listen makes the socket (mode 0660, in a directory of mode 0750 if it has to
// make one) and the server on it. Callers can connect from now on; they are
// served by Serve.
//
// A lock file beside the socket keeps other servers away; it stays after Close. Where it does,
// the server that has it learns of that: see Rival.
//
// Possible errors: ErrInUse, ErrNotSocket, ErrForeignSocket, trusted.ErrUnsafe and
// trusted.ErrLink (another user could change the directory or the lock), those of an invalid Config,
// of access.Open and of the file system.
func Listen(cfg Config) (*Server, error) {
	s, err := open(cfg)
	if errors.Is(err, ErrInUse) {
		claim(cmp.Or(cfg.Socket, DefaultSocket))
	}
	return s, err
}

// open is Listen, but the server that has the socket does not learn of it.
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
	in := &interceptor{access: cfg.Access, pacer: newPacer(cfg.Access), streams: s.streams, decoder: newDecoder(cfg.Aggregator), turns: newCallTurns(), log: cfg.Logger}
	s.grpc = grpc.NewServer(
		grpc.Creds(peerCredentials{insecure.NewCredentials(), cfg.Access, &receiving{byPublisher: counts[string]{}}}),
		grpc.ForceServerCodecV2(newRequestCodec()),
		grpc.MaxRecvMsgSize(MaxMessage),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.InitialWindowSize(window),
		grpc.InitialConnWindowSize(connWindow),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.ReadBufferSize(readBuffer),
		grpc.WriteBufferSize(64<<10),
		grpc.ConnectionTimeout(cfg.HandshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: cfg.KeepaliveTime, Timeout: cfg.KeepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	)
	impl := &service{agg: cfg.Aggregator, pacer: in.pacer, reads: &reads{making: make(chan struct{}, 1), byPublisher: make(map[string]*readShare)}, flows: cfg.Flows, partial: &partialSnapshots{access: cfg.Access, byPublisher: counts[string]{}}, log: cfg.Logger}
	if cfg.Local != nil {
		cfg.Local.in, cfg.Local.impl = in, impl
	}
	services := registrar{s.grpc, in}
	weftv1.RegisterPublisherServer(services, impl)
	weftv1.RegisterInspectServer(services, impl)
	weftv1.RegisterFlowsServer(services, impl)
	weftv1.RegisterHistoryServer(services, impl)
	weftv1.RegisterAdminServer(services, impl)
	healthv1.RegisterHealthServer(services, s.health)
	s.setHealth(healthv1.HealthCheckResponse_NOT_SERVING)
	if cfg.Register != nil {
		cfg.Register(services)
	}
	reflection.Register(services)
	return s, nil
}

// setHealth sets the status of the whole server and of its services.
func (s *Server) setHealth(status healthv1.HealthCheckResponse_ServingStatus) {
	for _, service := range []string{"", weftv1.Publisher_ServiceDesc.ServiceName, weftv1.Inspect_ServiceDesc.ServiceName, weftv1.Flows_ServiceDesc.ServiceName, weftv1.History_ServiceDesc.ServiceName, weftv1.Admin_ServiceDesc.ServiceName} {
		s.health.SetServingStatus(service, status)
	}
}

// Serve answers calls until ctx ends, and returns nil then. Aggregator.Run must be called
// with the same ctx: Serve waits for its end, so that updates that are committed while
// the aggregator stops are acknowledged. The health service reports SERVING when the
// aggregator commits updates.
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

// stop ends all calls, those that wait for a commit after it.
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

// Close ends everything at once. It is for a Server that is not served.
func (s *Server) Close() error {
	s.grpc.Stop()
	return s.listener.Close()
}
