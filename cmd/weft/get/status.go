package get

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
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
	var (
		conn  cli.Connection
		ready bool
	)
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the conditions of weft on this node: what is as it should be, and what is not",
		Long: `Show the conditions of each weft process of this node. STATE is "ok"; "degraded" if
something is wrong although rules are in force; or "not ready" if /readyz is 503.
They are also in /readyz?verbose and in the metric weft_degraded.

With --ready the exit code is 1 while something is "not ready", for probes of a weft whose ports another
process has.`,
		Example: "  weft get status\n  weft get status --ready\n  weft get status -w\n  weft get status -o json",
		Args:    cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&ready, "ready", false, "fail while a condition is not ready")
	return tabulate(cmd, &conn, func(ctx context.Context, _ []string) ([]*processStatus, error) {
		all, err := readStatus(ctx, &conn)
		if ready && err == nil {
			err = notReady(all)
		}
		return all, err
	}, statusRows, poll)
}

// notReady returns the first condition that is not ready as an error.
func notReady(all []*processStatus) error {
	for _, p := range all {
		for _, c := range p.Conditions {
			if c.State == conditions.NotReady.String() {
				return fmt.Errorf("weft %s is not ready: %s: %s", p.Process, c.Name, c.Message)
			}
		}
	}
	return nil
}

// processStatus is the state of a process in JSON and YAML.
type processStatus struct {
	Process    string             `json:"process"`
	Version    string             `json:"version"`
	Conditions []*conditionStatus `json:"conditions"`
}

// conditionStatus is a condition in JSON and YAML.
type conditionStatus struct {
	Name    string    `json:"name"`
	State   string    `json:"state"`
	Since   time.Time `json:"since"`
	Message string    `json:"message,omitempty"`
}

// readStatus asks the process on weft's socket, and the frontends that have sockets of their
// own beside it.
func readStatus(ctx context.Context, c *cli.Connection) (out []*processStatus, _ error) {
	sockets := []string{c.Socket}
	for _, f := range []frontend{servicesFrontend, policyFrontend} {
		if own := filepath.Join(filepath.Dir(c.Socket), f.socket); !slices.Contains(sockets, own) {
			sockets = append(sockets, own)
		}
	}
	var first error
	for i, socket := range sockets {
		publisher := ""
		if i == 0 {
			publisher = c.Publisher
		}
		p, err := readProcess(ctx, socket, publisher)
		if i == 0 {
			first = err
		}
		switch {
		case errors.Is(err, client.ErrUnavailable):
		case err != nil:
			return nil, err
		default:
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return nil, first
	}
	return out, nil
}

// readProcess asks one process.
func readProcess(ctx context.Context, socket, publisher string) (*processStatus, error) {
	conn, err := client.Dial(ctx, client.Config{Socket: socket, Publisher: publisher, DialTimeout: -1})
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	answer, err := conditionspb.NewConditionsClient(conn.Conn()).ListConditions(ctx, &conditionspb.ListConditionsRequest{})
	switch status.Code(err) {
	case codes.OK:
	case codes.Unimplemented:
		return nil, fmt.Errorf("read status: the weft on %s is older than this command: restart it with this version", socket)
	default:
		return nil, fmt.Errorf("read status: %s", status.Convert(err).Message())
	}
	out := &processStatus{Process: answer.GetProcess(), Version: answer.GetVersion()}
	for _, m := range answer.GetConditions() {
		out.Conditions = append(out.Conditions, &conditionStatus{
			Name: m.GetName(), State: conditions.StateOf(m.GetState()).String(), Since: m.GetSince().AsTime(), Message: m.GetMessage(),
		})
	}
	return out, nil
}

// statusRows returns a row for each condition.
func statusRows(processes []*processStatus, _ time.Time) *Rows {
	t := newRows("PROCESS", "CONDITION", "STATE", "SINCE", "MESSAGE")
	t.key = 2
	for _, p := range processes {
		for _, c := range p.Conditions {
			t.Add("weft "+p.Process, c.Name, c.State, c.Since.Local().Format(time.DateTime), c.Message)
		}
	}
	return t
}
