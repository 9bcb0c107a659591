package cli

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/aggregator/client"
)

// Connection selects an aggregator and a publisher.
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

// Do calls f with a connection made within client.DefaultDialTimeout.
func (c *Connection) Do(ctx context.Context, f func(*client.Client) error) error {
	_, err := Ask(ctx, client.Config{Socket: c.Socket, Publisher: c.Publisher}, func(cl *client.Client) (none struct{}, _ error) { return none, f(cl) })
	return err
}

// Ask calls ask with a connection.
func Ask[T any](ctx context.Context, config client.Config, ask func(*client.Client) (T, error)) (answer T, err error) {
	cl, err := client.Dial(ctx, config)
	if err != nil {
		return answer, err
	}
	defer func() { _ = cl.Close() }()
	return ask(cl)
}

// Query gives a command its flags and its run: it prints an answer as JSON, YAML, or in the format
// named by text, with print.
func Query[T any](cmd *cobra.Command, conn *Connection, text string,
	ask func(ctx context.Context, c *client.Client, args []string) (T, error), print func(w io.Writer, answer T) error) *cobra.Command {
	var output Output
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return conn.Do(cmd.Context(), func(c *client.Client) error {
			answer, err := ask(cmd.Context(), c, args)
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			return output.Write(w, answer, func() error { return print(w, answer) })
		})
	}
	conn.AddFlags(cmd)
	output.AddFlag(cmd, text, "json", "yaml")
	return cmd
}

// SplitName splits "publisher/name"; the publisher may be empty.
func SplitName(arg string) (publisher, name string) {
	if p, n, ok := strings.Cut(arg, "/"); ok {
		return p, n
	}
	return "", arg
}
