package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/nftfile"
)

// flagConfirm is the flag of an apply that is to be confirmed.
const flagConfirm = "confirm"

func newApplyCmd() *cobra.Command {
	var (
		conn     cli.Connection
		includes nftfile.IncludePath
		file     string
		name     string
		priority int32
		lifetime = "sticky"
		confirm  time.Duration
	)
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Publish a .nft file as a fragment and wait until it is committed",
		Long: `Publish a .nft file as a fragment and wait until it is committed. The file
replaces the fragment's earlier content; applying it again changes nothing.
weft apply reads the files that it includes, not the daemon.

With --confirm, weft gives the fragment its earlier content again, or withdraws it if it is new,
unless weft confirm comes in time: also if this command, the connection or
weft itself ends meanwhile. Nothing else changes the fragment until then.`,
		Example: `  weft apply -f deny.nft
  weft apply -f firewall.nft --confirm 30s && weft confirm firewall
  weft apply --name deny -f - < deny.nft`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			life, ok := weftv1.Lifetime_value["LIFETIME_"+strings.ToUpper(lifetime)]
			if !ok || life == int32(weftv1.Lifetime_LIFETIME_SESSION) || life == 0 {
				return cli.Usagef("--lifetime %q: want sticky or durable", lifetime)
			}
			if file == "" {
				return cli.Usagef("weft apply: name the file with -f (see weft apply --help)")
			}
			bundle, err := includes.Read(cmd.InOrStdin(), file)
			if err != nil {
				return err
			}
			name := nftfile.FragmentName(name, file)
			if name == "" {
				return cli.Usagef("apply -f -: give the fragment a --name")
			}
			return conn.Do(cmd.Context(), func(c *client.Client) error {
				fragment := &weftv1.Fragment{Name: name, Priority: priority, Lifetime: weftv1.Lifetime(life), Nft: bundle.Text}
				if cmd.Flags().Changed(flagConfirm) {
					revision, at, err := c.ApplyUnconfirmed(cmd.Context(), fragment, confirm)
					if err != nil {
						return nftfile.LocateError(bundle, err)
					}
					fmt.Fprintf(cmd.OutOrStdout(), "%s committed, revision %d; taken back at %s unless: weft confirm %s\n", name, revision, at.Local().Format(time.TimeOnly), name)
					return nil
				}
				revision, err := c.Apply(cmd.Context(), fragment)
				if err != nil {
					return nftfile.LocateError(bundle, err)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s committed, revision %d\n", name, revision)
				return nil
			})
		},
	}
	conn.AddFlags(cmd)
	includes.AddFlag(cmd.Flags())
	cmd.Flags().StringVarP(&file, "file", "f", "", "the .nft file; - reads standard input")
	cmd.Flags().StringVar(&name, "name", "", "name of the fragment (default: the file's name without .nft)")
	cmd.Flags().Int32Var(&priority, "priority", 0, "order among the fragments that share an object, lowest first")
	cmd.Flags().StringVar(&lifetime, "lifetime", lifetime, "sticky (stays when weft restarts) or durable (also after a reboot)")
	cmd.Flags().DurationVar(&confirm, flagConfirm, 0, "take it back after this time (1s to 24h), unless weft confirm comes before")
	// The only error is an unknown flag.
	_ = cmd.MarkFlagFilename("file", "nft")
	return cmd
}
