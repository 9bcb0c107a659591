package main

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/nftfile"
	"github.com/weft-proxy/weft/cmd/weft/publish"
)

func newPublishCmd() *cobra.Command {
	var (
		conn     cli.Connection
		includes nftfile.IncludePath
		stdin    bool
		lifetime = "sticky"
		ttl      time.Duration
	)
	cmd := &cobra.Command{
		Use:   "publish --stdin",
		Short: "Hold a publisher's session for a program: updates as JSON lines in, acknowledgements out",
		Long: `Hold a publisher's session for a program that speaks no gRPC. Each line of
standard input is a weft.v1.PublishRequest in JSON: a snapshot, a patch or a
withdraw, with an id. Standard output has one line of JSON for each, in the same
order: the id and the revision of the commit, or the error and its violations.
A line that is malformed gets an error with its number, and the next is read.

weft reconnects by itself after a lost connection and sends the fragments again. At
the end of the input it waits for the updates in flight. It exits with 0 if
everything was committed, and with 1 if anything was refused.`,
		Example: `  weft publish --stdin --publisher demo <<'END'
  {"id": 1, "snapshot": {"name": "deny", "nft": "table ip demo { set blocked { type ipv4_addr; }; }"}}
  {"id": 2, "patch": {"fragment": "deny", "tables": [{"family": "ip", "name": "demo", "elements": [{"set": "blocked", "add": [{"key": "192.0.2.1"}]}]}]}}
  END`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			life, ok := weftv1.Lifetime_value["LIFETIME_"+strings.ToUpper(lifetime)]
			if !ok || life == 0 {
				return cli.Usagef("--lifetime %q: want sticky, session or durable", lifetime)
			}
			if ttl < 0 {
				return cli.Usagef("--ttl %v: want more than 0", ttl)
			}
			if !stdin {
				return cli.Usagef("weft publish: say where updates come from: --stdin (see weft publish --help)")
			}
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			c, err := client.Dial(cmd.Context(), client.Config{Socket: conn.Socket, Publisher: conn.Publisher, Logger: log})
			if err != nil {
				return err
			}
			defer func() { _ = c.Close() }()
			result, err := publish.Run(cmd.Context(), publish.Config{
				Client: c, In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Lifetime: weftv1.Lifetime(life), TTL: ttl, Include: includes.Expand, Logger: log,
			})
			if err != nil {
				return fmt.Errorf("publish: %w", err)
			}
			if result.Refused > 0 {
				return fmt.Errorf("publish: %d of %d updates were refused", result.Refused, result.Refused+result.Committed)
			}
			return nil
		},
	}
	conn.AddFlags(cmd)
	includes.AddFlag(cmd.Flags())
	cmd.Flags().BoolVar(&stdin, "stdin", false, "read updates from standard input")
	cmd.Flags().StringVar(&lifetime, "lifetime", lifetime, "of snapshots that name none: sticky, session (withdrawn when weft publish ends) or durable")
	cmd.Flags().DurationVar(&ttl, "ttl", 0, "time to live of snapshots that have no ttl or expire_time; 0 means that they do not expire")
	return cmd
}
