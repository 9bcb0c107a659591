package localsocket

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
)

// Limits on readers.
const (
	// concurrent connections, further ones wait; concurrent calls per connection
	maxConnections = 64
	maxStreams     = 16
	// bytes of a request and its headers
	maxRequest = 1 << 20
	maxHeaders = 16 << 10
	// minimum interval of readers' pings
	minPing = 5 * time.Second
	// DefaultPatience bounds the start of a connection, its silence before a ping, and the answer.
	DefaultPatience = 10 * time.Second
	// time for readers to end on shutdown
	drain = 100 * time.Millisecond
)

// Config configures Serve.
type Config struct {
	// Path is the socket's path. Required.
	Path string
	// Register registers the services. Required.
	Register func(grpc.ServiceRegistrar)
	// Patience bounds the wait for readers; 0 means DefaultPatience. For silent readers it is at least a
	// second.
	Patience time.Duration
	// Logger receives panics; nil discards.
	Logger *slog.Logger
}

// Serve serves on a Unix socket until ctx ends, then returns nil. Only the owner and group may connect
// (mode 0660). It replaces a stale socket, and fails if a process answers on it.
func Serve(ctx context.Context, cfg Config) error {
	cfg.Patience = cmp.Or(cfg.Patience, DefaultPatience)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	l, err := listen(ctx, cfg.Path)
	if err != nil {
		return fmt.Errorf("offer the local state on %s: %w", cfg.Path, err)
	}
	srv := grpc.NewServer(
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxRecvMsgSize(maxRequest),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.ConnectionTimeout(cfg.Patience),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: cfg.Patience, Timeout: cfg.Patience}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
		grpc.UnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, call grpc.UnaryHandler) (_ any, err error) {
			defer recovered(cfg.Logger, info.FullMethod, &err)
			return call(ctx, req)
		}),
		grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, call grpc.StreamHandler) (err error) {
			defer recovered(cfg.Logger, info.FullMethod, &err)
			return call(srv, stream)
		}),
	)
	cfg.Register(srv)
	reflection.Register(srv)
	stop := context.AfterFunc(ctx, func() {
		// Watches end only with their connections.
		t := time.AfterFunc(drain, srv.Stop)
		srv.GracefulStop()
		t.Stop()
	})
	defer stop()
	if err := srv.Serve(netutil.LimitListener(l, maxConnections)); err != nil && ctx.Err() == nil {
		return fmt.Errorf("offer the local state on %s: %w", cfg.Path, err)
	}
	return nil
}

func recovered(log *slog.Logger, method string, err *error) {
	if r := recover(); r != nil {
		log.Error("a call on the local socket panicked", "method", method, "panic", r, "stack", string(debug.Stack()))
		*err = status.Error(codes.Internal, "the call panicked: see the log")
	}
}
