package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/durationpb"
	"sigs.k8s.io/yaml"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
)

func newWatchCmd() *cobra.Command {
	var (
		conn   cli.Connection
		output cli.Output
	)
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Show commits, rejections, drift and publishers as they happen",
		Example: `  weft watch
  weft watch -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return conn.Do(cmd.Context(), func(c *client.Client) error {
				return c.Watch(cmd.Context(), func(ev *weftv1.WatchResponse) error {
					return writeEvent(cmd.OutOrStdout(), output.Format, ev)
				})
			})
		},
	}
	conn.AddFlags(cmd)
	output.AddFlag(cmd, "table", "json", "yaml")
	return cmd
}

func writeEvent(w io.Writer, format string, ev *weftv1.WatchResponse) error {
	if format == "table" {
		cli.Escape(ev)
		return printEvent(w, ev)
	}
	b, err := protojson.Marshal(ev)
	if err != nil {
		return err
	}
	if format == "json" {
		_, err = fmt.Fprintf(w, "%s\n", b)
		return err
	}
	if b, err = yaml.JSONToYAML(b); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "---\n%s", b)
	return err
}

func printEvent(w io.Writer, ev *weftv1.WatchResponse) error {
	// An unknown event is of an aggregator newer than this command.
	text := ev.String()
	switch e := ev.GetEvent().(type) {
	case *weftv1.WatchResponse_Commit:
		c := e.Commit
		text = fmt.Sprintf("commit %d  %s  %s  %s%s", c.GetRevision(),
			cli.Some(weftv1.FragmentTexts(c.GetFragments())), cli.Counts(c.GetChanges()), spent(c), flows(c.GetFlows()))
	case *weftv1.WatchResponse_Rejection:
		text = "rejected  " + (&client.RejectedError{Fragment: e.Rejection.GetFragment().Text(), Violations: e.Rejection.GetViolations()}).Detail()
	case *weftv1.WatchResponse_Drift:
		text = fmt.Sprintf("drift repaired  %s  %s", e.Drift.GetReason(), cli.Counts(e.Drift.GetRepaired()))
	case *weftv1.WatchResponse_Finding:
		f := e.Finding.GetFinding()
		text = "finding  " + cli.Finding(f)
		if e.Finding.GetGone() {
			text = fmt.Sprintf("finding gone  %s: %s (%s)", f.GetId(), f.GetText(), strings.Join(f.GetRules(), "; "))
		}
	case *weftv1.WatchResponse_Presence:
		state := "disconnected"
		if e.Presence.GetConnected() {
			state = "connected"
		}
		text = fmt.Sprintf("publisher %s %s  pid %d", e.Presence.GetPublisher(), state, e.Presence.GetPid())
	}
	_, err := fmt.Fprintf(w, "%s  %s\n", ev.GetTime().AsTime().Local().Format("15:04:05.000"), text)
	return err
}

func spent(c *weftv1.Commit) string {
	round := func(d *durationpb.Duration) time.Duration { return d.AsDuration().Round(10 * time.Microsecond) }
	return fmt.Sprintf("wait %v build %v kernel %v", round(c.GetWait()), round(c.GetBuild()), round(c.GetKernel()))
}

func flows(n uint64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("  %d flows flushed", n)
}
