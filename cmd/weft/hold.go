package main

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/aggregator/server"
)

func newHoldCmd() *cobra.Command {
	var socket string
	cmd := &cobra.Command{
		Use:   "hold",
		Short: "Keep weft's tables protected while weft is replaced or has crashed",
		Long: `Keep the netlink socket that owns weft's tables. The kernel lets no other
process change them, and "nft flush ruleset" skips them, as long as one process
has that socket. weft hands it over when it starts; the next weft takes it from
here. Run it beside weft, and do not replace it together with weft.

Before an older weft that does not know of it is started, end it: the older one
could not change the tables.`,
		Example: `  weft hold
  weft hold --socket /run/weft/hold.sock`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return server.Hold(cmd.Context(), socket, slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)))
		},
	}
	cmd.Flags().StringVar(&socket, "socket", server.HoldSocket(server.DefaultSocket), "Unix socket on which weft hands its netlink socket over: hold.sock beside that of weft")
	return cmd
}
