package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/aggregator/client"
)

// Connection holds the flags that say which aggregator a verb talks to, and as
// which publisher.
type Connection struct {
	Socket    string
	Publisher string
}

// AddFlags adds --socket and --publisher.
func (c *Connection) AddFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.Socket, "socket", client.DefaultSocket, "path of the aggregator's Unix socket")
	cmd.Flags().StringVar(&c.Publisher, "publisher", "", `name of the publisher to act as (default "uid-N")`)
	// The only error is an unknown flag.
	_ = cmd.RegisterFlagCompletionFunc("publisher", c.CompletePublishers)
}

// Do connects within client.DefaultDialTimeout, calls f, and closes the connection. It
// returns the error of client.Dial or of f.
func (c *Connection) Do(ctx context.Context, f func(*client.Client) error) error {
	cl, err := client.Dial(ctx, client.Config{Socket: c.Socket, Publisher: c.Publisher})
	if err != nil {
		return err
	}
	defer func() { _ = cl.Close() }()
	return f(cl)
}

// SplitName splits "publisher/name". Without a slash the publisher is empty,
// which means the caller.
func SplitName(arg string) (publisher, name string) {
	if p, n, ok := strings.Cut(arg, "/"); ok {
		return p, n
	}
	return "", arg
}
