package get

import (
	"context"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/frontends/policy/localstate/statepb"
	"github.com/weft-proxy/weft/frontends/services/model/modelpb"
)

// serviceChanges are the changes of the Service frontend's state.
func serviceChanges(conn *cli.Connection) changes {
	return streamed(conn, servicesFrontend, func(ctx context.Context, c *client.Client) (func() error, error) {
		stream, err := modelpb.NewLocalStateClient(c.Conn()).Watch(ctx, &modelpb.WatchRequest{})
		return func() error { return stream.RecvMsg(&modelpb.WatchResponse{}) }, err
	})
}

// policyChanges are the changes of the NetworkPolicy frontend's state.
func policyChanges(conn *cli.Connection) changes {
	return streamed(conn, policyFrontend, func(ctx context.Context, c *client.Client) (func() error, error) {
		stream, err := statepb.NewLocalStateClient(c.Conn()).Watch(ctx, &statepb.WatchRequest{})
		return func() error { return stream.RecvMsg(&statepb.WatchResponse{}) }, err
	})
}

// streamed returns the changes of a frontend's stream. A message is a change; the first ones
// have the state as it is.
func streamed(conn *cli.Connection, of frontend, open func(context.Context, *client.Client) (receive func() error, err error)) changes {
	return func(ctx context.Context, changed func()) error {
		_, err := readLocal(ctx, conn, of, func(ctx context.Context, c *client.Client) (struct{}, error) {
			receive, err := open(ctx, c)
			for err == nil {
				if err = receive(); err == nil {
					changed()
				}
			}
			return struct{}{}, err
		})
		return err
	}
}
