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

const flagConfirm = "confirm"

type application struct {
	conn     cli.Connection
	files    nftfile.Selection
	lifetime string
	life     weftv1.Lifetime
	// time until the revert, if confirmed (by --confirm)
	confirm   time.Duration
	confirmed bool
	stage     bool
	stdin     io.Reader
	out       io.Writer
	stderr    io.Writer
}

func newApplyCmd() *cobra.Command {
	a := application{lifetime: "sticky"}
	cmd := &cobra.Command{
		Use:   "apply -f FILE|DIR|-...",
		Short: "Publish .nft files as fragments and wait until they are committed",
		Long: `Publish each .nft file as a fragment, and wait until it is committed. A directory is all
its .nft files in the order of their names. A file replaces the fragment's earlier content;
applying it again changes nothing. For each fragment weft apply prints whether it was
created, configured or unchanged. It goes on after a file that is refused, names all that
were not applied at the end, and fails then. weft apply reads the files that a file includes,
not the daemon.

With --confirm, weft gives the fragment its earlier content again, or withdraws it if it is new,
unless weft confirm comes in time: also if this command, the connection or
weft itself ends meanwhile. Nothing else changes the fragment until then.

With --stage, weft publishes a copy that counts what the rules would do, and does nothing: the
fragment NAME-staged, with tables of such names.`,
		Example: `  weft apply -f deny.nft
  weft apply -f fragments/ -f more.nft
  weft apply -f firewall.nft --confirm 30s && weft confirm firewall
  weft apply -f firewall.nft --stage && weft get table inet firewall-staged
  weft apply --name deny -f - < deny.nft`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.confirmed = cmd.Flags().Changed(flagConfirm)
			a.stdin, a.out, a.stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			return a.run(cmd.Context())
		},
	}
	a.conn.AddFlags(cmd)
	a.files.AddFragmentFlags(cmd)
	set := cmd.Flags()
	set.StringVar(&a.lifetime, "lifetime", a.lifetime, "sticky (stays when weft restarts) or durable (also after a reboot)")
	set.DurationVar(&a.confirm, flagConfirm, 0, "take it back after this time (1s to 24h), unless weft confirm comes before")
	set.BoolVar(&a.stage, "stage", false, "publish a copy that counts what the rules would do, and does nothing")
	return cmd
}

func (a *application) run(ctx context.Context) error {
	a.life = weftv1.Lifetime(weftv1.Lifetime_value["LIFETIME_"+strings.ToUpper(a.lifetime)])
	if a.life != weftv1.Lifetime_LIFETIME_STICKY && a.life != weftv1.Lifetime_LIFETIME_DURABLE {
		return cli.Usagef("--lifetime %q: want sticky or durable", a.lifetime)
	}
	if len(a.files.Files) == 0 {
		return cli.Usagef("weft apply: name files with -f (see weft apply --help)")
	}
	sources, err := a.files.Sources("weft apply")
	if err != nil {
		return err
	}
	if len(sources) == 1 {
		// The file's errors are reported even if no daemon runs.
		f, bundle, err := a.read(sources[0])
		if err != nil {
			return err
		}
		return a.conn.Do(ctx, func(c *client.Client) error { return a.apply(ctx, c, f, bundle) })
	}
	paths := cli.Map(sources, func(from nftfile.Source) string { return from.Path })
	return a.conn.Do(ctx, func(c *client.Client) error {
		return each(ctx, a.stderr, "applied", paths, func(i int) error {
			f, bundle, err := a.read(sources[i])
			if err != nil {
				return err
			}
			return a.apply(ctx, c, f, bundle)
		})
	})
}

// read returns no bundle with --stage: the copy has no places in files.
func (a *application) read(from nftfile.Source) (*weftv1.Fragment, *ruleset.Bundle, error) {
	f, bundle, err := a.files.Fragment(a.stdin, from)
	if err != nil {
		return nil, nil, err
	}
	f.Lifetime = a.life
	if !a.stage {
		return f, bundle, nil
	}
	f.Name += counting.Suffix
	f.Nft, err = stagedText(from.Path, bundle)
	return f, nil, err
}

func (a *application) apply(ctx context.Context, c *client.Client, f *weftv1.Fragment, bundle *ruleset.Bundle) error {
	before, err := content(ctx, c, f.GetName())
	if err != nil {
		return err
	}
	var more string
	if a.confirmed {
		_, at, err := c.ApplyUnconfirmed(ctx, f, a.confirm)
		if err != nil {
			return nftfile.LocateError(bundle, err)
		}
		more = fmt.Sprintf("; taken back at %s unless: weft confirm %s", at.Local().Format(time.TimeOnly), f.GetName())
	} else if _, err := c.Apply(ctx, f); err != nil {
		return nftfile.LocateError(bundle, err)
	}
	if a.stage {
		more = "; it counts and does nothing: weft get table, weft delete " + f.GetName()
	}
	after, err := content(ctx, c, f.GetName())
	what := outcome(before, after)
	if err != nil {
		// Unknown without the content.
		what = "applied"
	}
	fmt.Fprintf(a.out, "fragment/%s %s%s\n", f.GetName(), what, more)
	return nil
}

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
