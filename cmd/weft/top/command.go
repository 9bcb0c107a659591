package top

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/nft/printable"
)

// minInterval is short, because the questions are cheap.
const minInterval = 200 * time.Millisecond

type options struct {
	conn     cli.Connection
	interval time.Duration
	once     bool
}

// New returns the verb.
func New() *cobra.Command {
	o := options{}
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show live what the daemon does: publishers by updates, Services by new connections, and commits",
		Long: `Show what the daemon does, again and again until q or Ctrl-C is pressed: publishers by
their updates per second, Services by their new connections per second, and the last
commits with the times that they took. If the standard output is not a terminal, or with
--once, it prints that one time, for one interval.

New connections are what the rules count (--service-counters of weft run).`,
		Example: `  weft top
  weft top --once --interval 1s`,
		Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.interval < minInterval {
				return cli.Usagef("--interval %v: want at least %v", o.interval, minInterval)
			}
			out := cmd.OutOrStdout()
			if terminal := cli.Terminal(out); terminal != nil && !o.once {
				in, _ := cmd.InOrStdin().(*os.File)
				return o.live(cmd.Context(), in, terminal)
			}
			return o.print(cmd.Context(), out)
		},
	}
	o.conn.AddFlags(cmd)
	cmd.Flags().DurationVar(&o.interval, "interval", 2*time.Second, "time between two samples")
	cmd.Flags().BoolVar(&o.once, "once", false, "print once, and do not use the terminal")
	return cmd
}

func (o *options) print(ctx context.Context, out io.Writer) error {
	s := sampler{conn: &o.conn}
	before, err := s.sample(ctx)
	if err != nil {
		return err
	}
	if !cli.Pause(ctx, o.interval) {
		return nil
	}
	after, err := s.sample(ctx)
	if err != nil {
		return err
	}
	for _, l := range view(o.conn.Socket, before, after, 0) {
		fmt.Fprintln(out, l.text)
	}
	return nil
}

func (o *options) live(ctx context.Context, in, out *os.File) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := sampler{conn: &o.conn}
	before, err := s.sample(ctx)
	if err != nil {
		return err
	}
	screen := openScreen(in, out, cancel)
	defer screen.close()
	after := before
	for {
		_, height := screen.size()
		lines := view(o.conn.Socket, before, after, height)
		if err != nil {
			lines[0].text = printable.Escape(cli.Describe(err))
		}
		if err := screen.draw(lines); err != nil {
			return err
		}
		if !cli.Pause(ctx, o.interval) {
			return nil
		}
		var next *sample
		// A restarting daemon is asked again.
		if next, err = s.sample(ctx); err == nil {
			before, after = after, next
		}
	}
}
