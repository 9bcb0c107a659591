package get

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/cmd/weft/cli"
)

// watchPeriod is the least time between two lists.
const watchPeriod = time.Second

type flags struct {
	conn          cli.Connection
	output        cli.Output
	watch, events bool
}

func (f *flags) add(cmd *cobra.Command, formats ...string) {
	f.conn.AddFlags(cmd)
	f.output.AddFlag(cmd, formats...)
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "after the list, print rows as they change; one that is gone is printed once more")
	cmd.Flags().BoolVar(&f.events, "output-watch-events", false, "with --watch: begin each row with ADDED, MODIFIED or DELETED")
	cmd.PreRunE = f.check
}

func (f *flags) check(*cobra.Command, []string) error {
	switch {
	case f.events && !f.watch:
		return cli.Usagef("--output-watch-events: it goes with --watch")
	case f.watch && f.output.Format != "table":
		return cli.Usagef("--watch: it prints a table, and not %s; weft watch -o json prints events", f.output.Format)
	default:
		return nil
	}
}

// changes calls changed after each change, or periodically if changes are unknown, until ctx ends or
// an error occurs.
type changes func(ctx context.Context, changed func()) error

// polled is for cheap lists.
func polled(*cli.Connection) changes { return poll }

func poll(ctx context.Context, changed func()) error {
	changed()
	for cli.Pause(ctx, watchPeriod) {
		changed()
	}
	return nil
}

// watch returns nil if ctx ends.
func watch[T any](ctx context.Context, out, notes io.Writer, events bool,
	ask func(context.Context) (T, error), rows func(T, time.Time) *Rows, changes changes) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		ended <- changes(ctx, func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		})
	}()
	answer, err := ask(ctx)
	if err != nil {
		return err
	}
	p := &printer{out: out}
	first := rows(answer, time.Now())
	p.rows(difference(nil, first, events))
	for _, n := range first.Notes {
		fmt.Fprintln(notes, n)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			if ctx.Err() != nil {
				return nil
			}
			return err
		case <-changed:
		}
		next, err := ask(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the user has ended it
		}
		if err != nil {
			return err
		}
		// With different times, each age is a change.
		now := time.Now()
		p.rows(difference(rows(answer, now), rows(next, now), events))
		answer = next
		if !cli.Pause(ctx, watchPeriod) {
			return nil
		}
	}
}

// difference adds an event to each row if events is true, and the columns if before is nil.
func difference(before, after *Rows, events bool) (out [][]string) {
	name := func(row []string) string { return strings.Join(row[:min(after.key, len(row))], "\t") }
	add := func(event string, row []string) {
		if events {
			row = slices.Insert(slices.Clone(row), 0, event)
		}
		out = append(out, row)
	}
	if before == nil {
		add("EVENT", after.Columns)
		before = &Rows{}
	}
	old := make(map[string][]string, len(before.Rows))
	for _, row := range before.Rows {
		old[name(row)] = row
	}
	for _, row := range after.Rows {
		was, ok := old[name(row)]
		delete(old, name(row))
		switch {
		case !ok:
			add("ADDED", row)
		case !slices.Equal(was, row):
			add("MODIFIED", row)
		}
	}
	for _, row := range before.Rows {
		if _, gone := old[name(row)]; gone {
			delete(old, name(row))
			add("DELETED", row)
		}
	}
	return out
}
