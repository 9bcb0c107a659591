package get

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/conditions"
	"github.com/weft-proxy/weft/cmd/weft/conditions/conditionspb"
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

// ReadStatus returns the conditions of the process on weft's socket, and of frontends with their own
// sockets.
//
// Possible errors: client.ErrUnavailable if no process answers.
func ReadStatus(ctx context.Context, c *cli.Connection) (out []*conditions.Process, _ error) {
	p, first := readProcess(ctx, c.Socket, c.Publisher)
	if first == nil {
		out = append(out, p)
	} else if !errors.Is(first, client.ErrUnavailable) {
		return nil, first
	}
	for _, f := range []frontend{servicesFrontend, policyFrontend} {
		for _, own := range f.own(c.Socket) {
			if own == c.Socket {
				break
			}
			p, err := readProcess(ctx, own, "")
			if errors.Is(err, client.ErrUnavailable) {
				continue
			}
			if err != nil {
				return nil, err
			}
			out = append(out, p)
			break
		}
	}
	if len(out) == 0 {
		return nil, first
	}
	return out, nil
}

func readProcess(ctx context.Context, socket, publisher string) (*conditions.Process, error) {
	config := client.Config{Socket: socket, Publisher: publisher, DialTimeout: -1}
	return cli.Ask(ctx, config, func(c *client.Client) (*conditions.Process, error) {
		answer, err := conditionspb.NewConditionsClient(c.Conn()).ListConditions(ctx, &conditionspb.ListConditionsRequest{})
		switch status.Code(err) {
		case codes.OK:
			return conditions.ProcessOf(answer), nil
		case codes.Unimplemented:
			return nil, fmt.Errorf("read status: the weft on %s is older than this command: restart it with this version", socket)
		default:
			return nil, fmt.Errorf("read status: %s", status.Convert(err).Message())
		}
	})
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
