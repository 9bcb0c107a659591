package client

import (
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
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

const (
	// DefaultSocket is where the aggregator listens unless told otherwise.
	DefaultSocket = "/run/weft/weft.sock"
	// DefaultDialTimeout is how long Dial waits for an aggregator.
	DefaultDialTimeout = 3 * time.Second
	// MaxMessage is the greatest size of one message in either direction.
	MaxMessage = 16 << 20
	// publisherKey is the metadata that carries the publisher's name.
	publisherKey = "weft-publisher"
	// window is the flow control window of the connection and of its
	// streams: a snapshot should never wait for a window update.
	window = 8 << 20
)

// Config says where the aggregator is and who calls.
type Config struct {
	// Socket is the path of the Unix socket; empty means DefaultSocket.
	Socket string
	// Publisher is the caller's name: 1 to 63 of [a-z0-9._-]. Empty lets the
	// aggregator name the caller "uid-<n>".
	Publisher string
	// DialTimeout is how long Dial keeps trying while nothing listens; 0
	// means DefaultDialTimeout, negative a single attempt.
	DialTimeout time.Duration
	// Logger gets a line for each connection lost and regained; nil discards.
	Logger *slog.Logger
}

func (c *Config) setDefaults() {
	if c.Socket == "" {
		c.Socket = DefaultSocket
	}
	if c.DialTimeout == 0 {
		c.DialTimeout = DefaultDialTimeout
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}

// Client is a connection to the aggregator.
type Client struct {
	cfg  Config
	conn *grpc.ClientConn
	api  weftv1.AggregatorClient
}

// Dial connects to the aggregator. It waits until something listens on the
// socket, at most for Config.DialTimeout; a connection that is lost later comes
// back by itself.
//
// Possible errors: ErrUnavailable, ErrPermission, ctx's.
func Dial(ctx context.Context, cfg Config) (*Client, error) {
	cfg.setDefaults()
	if err := await(ctx, cfg.Socket, cfg.DialTimeout); err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("passthrough:///weft",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", cfg.Socket)
		}),
		grpc.WithAuthority("localhost"),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
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
	return &Client{cfg: cfg, conn: conn, api: weftv1.NewAggregatorClient(conn)}, nil
}

// await returns once something accepts connections on the socket. gRPC dials
// lazily and says little about why it can not: this gives the clear error.
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

// dialError says in words why nothing answers on the socket.
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

// Close ends the connection and all sessions on it.
func (c *Client) Close() error { return c.conn.Close() }

// outgoing adds the publisher's name to a call.
func (c *Client) outgoing(ctx context.Context) context.Context {
	if c.cfg.Publisher == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, publisherKey, c.cfg.Publisher)
}

// Apply replaces a fragment and returns the revision that carries it. A large
// fragment is sent in parts over a stream of its own.
//
// Possible errors: *RejectedError, ErrUnavailable, ErrPermission, ErrTooLarge,
// ctx's.
func (c *Client) Apply(ctx context.Context, f *weftv1.Fragment) (revision uint64, err error) {
	if parts(f) > 1 && f.GetLifetime() != weftv1.Lifetime_LIFETIME_SESSION {
		return c.applyLarge(ctx, f)
	}
	resp, err := c.api.Apply(c.outgoing(ctx), &weftv1.ApplyRequest{Fragment: f})
	if err != nil {
		return 0, fmt.Errorf("apply %s: %w", f.GetName(), fromStatus(f.GetName(), err))
	}
	return resp.GetRevision(), nil
}

// applyLarge applies a fragment that may not fit into one message.
func (c *Client) applyLarge(ctx context.Context, f *weftv1.Fragment) (uint64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.api.Publish(c.outgoing(ctx))
	if err != nil {
		return 0, fmt.Errorf("apply %s: %w", f.GetName(), fromStatus(f.GetName(), err))
	}
	// A send error is io.EOF: the reason comes from Recv.
	for part := range split(f, 1) {
		if stream.Send(part) != nil {
			break
		}
	}
	resp, err := stream.Recv()
	if err != nil {
		return 0, fmt.Errorf("apply %s: %w", f.GetName(), fromStatus(f.GetName(), err))
	}
	if r := resp.GetRejected(); r != nil {
		return 0, fmt.Errorf("apply %s: %w", f.GetName(), &RejectedError{Fragment: f.GetName(), Violations: r.GetViolations()})
	}
	return resp.GetCommitted().GetRevision(), nil
}

// Delete withdraws a fragment and returns the revision that does. An empty
// publisher means the caller's own.
//
// Possible errors: *RejectedError (something still refers to it), ErrNotFound,
// ErrPermission, ErrUnavailable, ctx's.
func (c *Client) Delete(ctx context.Context, publisher, fragment string) (revision uint64, err error) {
	resp, err := c.api.Delete(c.outgoing(ctx), &weftv1.DeleteRequest{Publisher: publisher, Fragment: fragment})
	if err != nil {
		return 0, fmt.Errorf("delete %s: %w", fragment, fromStatus(fragment, err))
	}
	return resp.GetRevision(), nil
}

// Get returns one fragment's committed content and status. An empty publisher
// means the caller's own.
//
// Possible errors: ErrNotFound, ErrPermission, ErrUnavailable, ctx's.
func (c *Client) Get(ctx context.Context, publisher, fragment string) (*weftv1.GetResponse, error) {
	resp, err := c.api.Get(c.outgoing(ctx), &weftv1.GetRequest{Publisher: publisher, Fragment: fragment})
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", fragment, fromStatus(fragment, err))
	}
	return resp, nil
}

// List returns the status of all fragments and the last revision.
//
// Possible errors: ErrPermission, ErrUnavailable, ctx's.
func (c *Client) List(ctx context.Context) (*weftv1.ListResponse, error) {
	resp, err := c.api.List(c.outgoing(ctx), &weftv1.ListRequest{})
	if err != nil {
		return nil, fmt.Errorf("list fragments: %w", fromStatus("", err))
	}
	return resp, nil
}

// Watch calls f with everything that happens from now on, until ctx ends (it
// returns nil then), f returns an error (which it returns) or the connection is
// lost.
//
// Possible errors: f's, ErrPermission, ErrUnavailable, ErrTooLarge (the caller
// is too slow and was dropped).
func (c *Client) Watch(ctx context.Context, f func(*weftv1.Event) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.api.Watch(c.outgoing(ctx), &weftv1.WatchRequest{})
	if err != nil {
		return fmt.Errorf("watch: %w", fromStatus("", err))
	}
	for {
		ev, err := stream.Recv()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("watch: %w", fromStatus("", err))
		}
		if err := f(ev); err != nil {
			return err
		}
	}
}
