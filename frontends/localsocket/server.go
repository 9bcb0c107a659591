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

// The limits on readers.
const (
	// maxConnections is the number of connections at a time: further ones wait. maxStreams
	// is the number of calls at a time on each.
	maxConnections = 64
	maxStreams     = 16
	// maxRequest and maxHeaders are the bytes of a request and of its headers.
	maxRequest = 1 << 20
	maxHeaders = 16 << 10
	// minPing is how often a reader may ask whether the server is there.
	minPing = 5 * time.Second
	// DefaultPatience is how long a connection may take to begin, may be silent before it
	// is asked for an answer, and may take to give it.
	DefaultPatience = 10 * time.Second
	// drain is how long a reader has to end when the process ends.
	drain = 100 * time.Millisecond
)

// Config describes what Serve does.
type Config struct {
	// Path is that of the socket. Required.
	Path string
	// Register registers the services. Required.
	Register func(grpc.ServiceRegistrar)
	// Patience bounds the wait for readers; 0 means DefaultPatience, and less than a second
	// means a second for those that are silent.
	Patience time.Duration
	// Logger receives panics; nil discards.
	Logger *slog.Logger
}

// Serve serves on a Unix socket until ctx ends, and returns nil then. Only the owner's user
// and group may connect (mode 0660). A socket of an earlier process is replaced; if a process
// answers on it, Serve returns an error.
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

// recovered makes the error of a call from its panic.
func recovered(log *slog.Logger, method string, err *error) {
	if r := recover(); r != nil {
		log.Error("a call on the local socket panicked", "method", method, "panic", r, "stack", string(debug.Stack()))
		*err = status.Error(codes.Internal, "the call panicked: see the log")
	}
}
