package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/nftfile"
	"github.com/weft-proxy/weft/nft/counting"
	"github.com/weft-proxy/weft/nft/ruleset"
)

// flagConfirm is the flag of an apply that is to be confirmed.
const flagConfirm = "confirm"

// application is one run of weft apply.
type application struct {
	conn     cli.Connection
	includes nftfile.IncludePath
	file     string
	name     string
	priority int32
	lifetime string
	// confirm is the time until it is taken back, if confirmed is true.
	confirm   time.Duration
	confirmed bool
	stage     bool
}

func newApplyCmd() *cobra.Command {
	a := application{lifetime: "sticky"}
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Publish a .nft file as a fragment and wait until it is committed",
		Long: `Publish a .nft file as a fragment and wait until it is committed. The file
replaces the fragment's earlier content; applying it again changes nothing.
weft apply reads the files that it includes, not the daemon.

With --confirm, weft gives the fragment its earlier content again, or withdraws it if it is new,
unless weft confirm comes in time: also if this command, the connection or
weft itself ends meanwhile. Nothing else changes the fragment until then.

With --stage, weft publishes a copy that counts what the rules would do, and does nothing: the
fragment NAME-staged, with tables of such names.`,
		Example: `  weft apply -f deny.nft
  weft apply -f firewall.nft --confirm 30s && weft confirm firewall
  weft apply -f firewall.nft --stage && weft get table inet firewall-staged
  weft apply --name deny -f - < deny.nft`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.confirmed = cmd.Flags().Changed(flagConfirm)
			return a.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	a.conn.AddFlags(cmd)
	set := cmd.Flags()
	a.includes.AddFlag(set)
	set.StringVarP(&a.file, "file", "f", "", "the .nft file; - reads standard input")
	set.StringVar(&a.name, "name", "", "name of the fragment (default: the file's name without .nft)")
	set.Int32Var(&a.priority, "priority", 0, "order among the fragments that share an object, lowest first")
	set.StringVar(&a.lifetime, "lifetime", a.lifetime, "sticky (stays when weft restarts) or durable (also after a reboot)")
	set.DurationVar(&a.confirm, flagConfirm, 0, "take it back after this time (1s to 24h), unless weft confirm comes before")
	set.BoolVar(&a.stage, "stage", false, "publish a copy that counts what the rules would do, and does nothing")
	// The only error is an unknown flag.
	_ = cmd.MarkFlagFilename("file", "nft")
	return cmd
}

// run reads the file and publishes it.
func (a *application) run(ctx context.Context, stdin io.Reader, out io.Writer) error {
	life, ok := weftv1.Lifetime_value["LIFETIME_"+strings.ToUpper(a.lifetime)]
	if !ok || life == int32(weftv1.Lifetime_LIFETIME_SESSION) || life == 0 {
		return cli.Usagef("--lifetime %q: want sticky or durable", a.lifetime)
	}
	if a.file == "" {
		return cli.Usagef("weft apply: name the file with -f (see weft apply --help)")
	}
	bundle, err := a.includes.Read(stdin, a.file)
	if err != nil {
		return err
	}
	f := &weftv1.Fragment{Name: nftfile.FragmentName(a.name, a.file), Priority: a.priority, Lifetime: weftv1.Lifetime(life), Nft: bundle.Text}
	if f.GetName() == "" {
		return cli.Usagef("apply -f -: give the fragment a --name")
	}
	if a.stage {
		if f.Nft, err = stagedText(a.file, bundle); err != nil {
			return err
		}
		f.Name += counting.Suffix
		// Places of errors are those of the copy.
		bundle = nil
	}
	return a.conn.Do(ctx, func(c *client.Client) error {
		line, err := a.apply(ctx, c, f)
		if err != nil && bundle != nil {
			err = nftfile.LocateError(bundle, err)
		}
		if err == nil {
			fmt.Fprintln(out, line)
		}
		return err
	})
}

// apply publishes the fragment, and returns what is to be said.
func (a *application) apply(ctx context.Context, c *client.Client, f *weftv1.Fragment) (string, error) {
	if a.confirmed {
		revision, at, err := c.ApplyUnconfirmed(ctx, f, a.confirm)
		return fmt.Sprintf("%s committed, revision %d; taken back at %s unless: weft confirm %s", f.GetName(), revision, at.Local().Format(time.TimeOnly), f.GetName()), err
	}
	revision, err := c.Apply(ctx, f)
	line := fmt.Sprintf("%s committed, revision %d", f.GetName(), revision)
	if a.stage {
		line += "; it counts and does nothing: weft get table, weft delete " + f.GetName()
	}
	return line, err
}

// stagedText returns the text of the copy of a file that counts.
func stagedText(file string, b *ruleset.Bundle) (string, error) {
	tables, err := ruleset.Parse(file, b.Text)
	if err == nil {
		tables, err = counting.Tables(tables)
	}
	if err != nil {
		return "", fmt.Errorf("stage %s: %w", file, err)
	}
	return ruleset.Format(tables), nil
}
