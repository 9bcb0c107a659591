package get

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/conditions"
)

func newStatusCmd() *cobra.Command {
	var ready bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the conditions of weft on this node: what is as it should be, and what is not",
		Long: `Show the conditions of each weft process of this node. STATE is "ok"; "degraded" if
something is wrong although rules are in force; or "not ready" if /readyz is 503.
MESSAGE says what is wrong, and REMEDY what to do. They are also in /readyz?verbose, in
"weft doctor", on the status page, in Events of the Node and in the metric weft_degraded.

With --ready the exit code is 1 while something is "not ready", for probes of a weft whose ports another
process has.`,
		Example: "  weft get status\n  weft get status --ready\n  weft get status -w\n  weft get status -o json",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().BoolVar(&ready, "ready", false, "fail while a condition is not ready")
	return kind[[]*conditions.Process]{func(ctx context.Context, conn *cli.Connection, _ []string) ([]*conditions.Process, error) {
		all, err := ReadStatus(ctx, conn)
		for _, p := range all {
			if failing := p.Ready(); ready && failing != nil {
				return nil, fmt.Errorf("weft %s is not ready: %w", p.Process, failing)
			}
		}
		return all, err
	}, Status, polled}.command(cmd, nil)
}

// ReadStatus returns the conditions of the aggregator's process and of connected processes.
//
// Possible errors: client.ErrUnavailable if no aggregator answers.
func ReadStatus(ctx context.Context, c *cli.Connection) (out []*conditions.Process, _ error) {
	for _, f := range []frontend{{publisher: AggregatorPublisher}, servicesFrontend, policyFrontend} {
		processes, err := readTable[*conditions.Process](ctx, c, f, conditions.TableName, nil)
		if err != nil && !errors.As(err, new(*NoFrontendError)) {
			return nil, err
		}
		out = append(out, processes...)
	}
	return out, nil
}

// Status returns a row for each condition.
func Status(processes []*conditions.Process, _ time.Time) *Rows {
	t := newRows("PROCESS", "CONDITION", "STATE", "SINCE", "MESSAGE", "REMEDY")
	t.key = 2
	for _, p := range processes {
		for _, c := range p.Conditions {
			t.Add("weft "+p.Process, c.Name, c.State, c.Since.Local().Format(time.DateTime), c.Message, c.Remedy)
		}
	}
	return t
}
