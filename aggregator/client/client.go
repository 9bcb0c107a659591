package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

const (
	// DefaultSocket is the default path of the socket.
	DefaultSocket = "/run/weft/weft.sock"
	// DefaultDialTimeout is the default of Config.DialTimeout.
	DefaultDialTimeout = 3 * time.Second
	// MaxMessage is the largest request in bytes.
	MaxMessage   = 16 << 20
	publisherKey = "weft-publisher"
	// bytes of the flow control windows: a snapshot should never wait for a window update
	window = 8 << 20
)

// Config describes the aggregator's address and the caller.
type Config struct {
	// path; empty means DefaultSocket
	Socket string
	// 1 to 63 of [a-z0-9._-]; if empty, the aggregator chooses (access.Policy.Resolve)
	Publisher string
	// how long Dial retries without a listener; 0 means DefaultDialTimeout, negative a single
	// attempt
	DialTimeout time.Duration
	// optional; carries the sessions' streams, not other calls
	Local grpc.ClientConnInterface
	// for a publisher of packed elements, if the aggregator behind the socket lacks the feature
	// packed
	Text Text
	// nil discards
	Logger *slog.Logger

	pace pace
}

func (c *Config) setDefaults() {
	c.Socket = cmp.Or(c.Socket, DefaultSocket)
	c.DialTimeout = cmp.Or(c.DialTimeout, DefaultDialTimeout)
	c.pace = cmp.Or(c.pace, defaultPace())
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}

// Client is a connection to the aggregator.
type Client struct {
	cfg  Config
	conn *grpc.ClientConn

	// ends with the client, unlike a Config.Local
	ctx    context.Context //nolint:containedctx // see above
	cancel context.CancelFunc

	publisher weftv1.PublisherClient
	streams   weftv1.PublisherClient
	inspect   weftv1.InspectClient
	flows     weftv1.FlowsClient
	history   weftv1.HistoryClient
	tables    weftv1.TablesClient
	admin     weftv1.AdminClient
}

// Dial connects to the aggregator, and later reconnects automatically. It waits up to
// Config.DialTimeout for a listener on the socket.
//
// Possible errors: ErrUnavailable, ErrPermission, ctx's.
func Dial(ctx context.Context, cfg Config) (*Client, error) {
	cfg.setDefaults()
	if err := await(ctx, cfg.Socket, cfg.DialTimeout); err != nil {
		return nil, err
	}
	return connect(cfg)
}

func connect(cfg Config) (*Client, error) {
	conn, err := grpc.NewClient("passthrough:///weft",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", cfg.Socket)
		}),
		grpc.WithAuthority("localhost"),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: cfg.pace.backoff, Multiplier: 1.6, Jitter: 0.2, MaxDelay: cfg.pace.maxBackoff},
			MinConnectTimeout: 2 * time.Second,
		}),
		grpc.WithIdleTimeout(0),
		grpc.WithInitialWindowSize(window),
		grpc.WithInitialConnWindowSize(window),
		grpc.WithReadBufferSize(64<<10),
		grpc.WithWriteBufferSize(256<<10),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(4*MaxMessage), grpc.MaxCallSendMsgSize(MaxMessage)),
	)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", cfg.Socket, err)
	}
	c := &Client{
		cfg: cfg, conn: conn,
		publisher: weftv1.NewPublisherClient(conn), inspect: weftv1.NewInspectClient(conn), flows: weftv1.NewFlowsClient(conn), history: weftv1.NewHistoryClient(conn), tables: weftv1.NewTablesClient(conn), admin: weftv1.NewAdminClient(conn),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	if c.streams = c.publisher; cfg.Local != nil {
		c.streams = weftv1.NewPublisherClient(cfg.Local)
	}
	return c, nil
}

// await waits for the socket, because gRPC dials lazily with poor errors.
func await(ctx context.Context, socket string, timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	for {
		c, err := new(net.Dialer).DialContext(ctx, "unix", socket)
		if err == nil {
			return c.Close()
		}
		if ctx.Err() != nil {
			return fmt.Errorf("dial %s: %w", socket, ctx.Err())
		}
		if errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("dial %s: %w: the socket is for root only unless its owner says otherwise", socket, ErrPermission)
		}
		if time.Now().After(deadline) {
			return dialError(socket, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func dialError(socket string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("dial %s: %w: there is no such socket: start \"weft run\" or \"weft aggregator\", or name another with --socket", socket, ErrUnavailable)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("dial %s: %w: nothing listens on the socket: start \"weft run\" or \"weft aggregator\"", socket, ErrUnavailable)
	case errors.Is(err, syscall.ENOTSOCK), errors.Is(err, syscall.EPROTOTYPE):
		return fmt.Errorf("dial %s: %w: that path is not a stream socket", socket, ErrUnavailable)
	case errors.Is(err, syscall.EINVAL):
		return fmt.Errorf("dial %s: %w: the path is longer than the 107 bytes that a Unix socket may have", socket, ErrUnavailable)
	default:
		return fmt.Errorf("dial %s: %w: %w", socket, ErrUnavailable, err)
	}
}

// Conn returns the connection, for calls without a method of Client. They do not carry
// Config.Publisher.
func (c *Client) Conn() grpc.ClientConnInterface { return c.conn }

// Close ends the connection and all its sessions. Calls in progress fail with ErrClosed.
func (c *Client) Close() error {
	c.cancel()
	return c.conn.Close()
}

func (c *Client) outgoing(ctx context.Context) context.Context {
	if c.cfg.Publisher == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, publisherKey, c.cfg.Publisher)
}

func (c *Client) failed(what, fragment string, err error) error {
	if c.conn.GetState() == connectivity.Shutdown {
		return fmt.Errorf("%s: %w", what, ErrClosed)
	}
	return fmt.Errorf("%s: %w", what, fromStatus(fragment, err))
}
