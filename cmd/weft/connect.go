package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/aggregator/client"
)

// connection holds the flags of the verbs that talk to a running aggregator.
type connection struct {
	socket    string
	publisher string
}

func (c *connection) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.socket, "socket", client.DefaultSocket, "path of the aggregator's Unix socket")
	cmd.Flags().StringVar(&c.publisher, "publisher", "", `name of the publisher to act as (default "uid-N")`)
}

func (c *connection) dial(ctx context.Context) (*client.Client, error) {
	return client.Dial(ctx, client.Config{Socket: c.socket, Publisher: c.publisher})
}

// withClient dials, calls f and closes.
func (c *connection) withClient(ctx context.Context, f func(*client.Client) error) error {
	cl, err := c.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = cl.Close() }()
	return f(cl)
}
