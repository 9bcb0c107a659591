package get

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

func newPublishersCmd() *cobra.Command {
	return list("publishers", "Show the publishers that have fragments or are connected, and the last rejection of each", (*client.Client).ListPublishers,
		func(w io.Writer, answer *weftv1.ListPublishersResponse) error {
			return printPublishers(w, answer.GetPublishers(), time.Now())
		})
}

// printLimits prints a row for each publisher with how much it holds of everything that
// can be limited, and how much it may hold: "12/100", or "12" if there is no limit.
func printLimits(w io.Writer, publishers []*weftv1.PublisherStatus) error {
	if len(publishers) == 0 || len(publishers[0].GetLimits()) == 0 {
		return nil
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(tw, "\nLIMITS OF")
	for _, l := range publishers[0].GetLimits() {
		fmt.Fprintf(tw, "\t%s", strings.ToUpper(l.GetName()))
	}
	fmt.Fprintln(tw)
	for _, p := range publishers {
		fmt.Fprint(tw, p.GetName())
		for _, l := range p.GetLimits() {
			fmt.Fprintf(tw, "\t%d", l.GetUsed())
			if l.GetLimit() > 0 {
				fmt.Fprintf(tw, "/%d", l.GetLimit())
			}
		}
		fmt.Fprintln(tw)
	}
	return tw.Flush()
}

// Publishers returns a row for each publisher.
func Publishers(publishers []*weftv1.PublisherStatus, now time.Time) *Rows {
	t := newRows("PUBLISHER", "SESSIONS", "PENDING", "FRAGMENTS", "ADOPTED", "RULES", "ELEMENTS", "SHADOWED", "COMMITTED", "REJECTED")
	for _, p := range publishers {
		var sessions []string
		pending := uint32(0)
		for _, s := range p.GetSessions() {
			sessions = append(sessions, fmt.Sprintf("pid %d uid %d for %v", s.GetPid(), s.GetUid(), now.Sub(s.GetSince().AsTime()).Round(time.Second)))
			pending += s.GetPending()
		}
		if len(sessions) == 0 {
			sessions = []string{"-"}
		}
		t.add(p.GetName(), strings.Join(sessions, ", "), pending,
			p.GetFragments(), p.GetAdopted(), p.GetRules(), p.GetElements(), p.GetShadowed(), p.GetCommitted(), p.GetRejected())
	}
	return t
}

// printPublishers prints a row for each publisher, their limits, then the last rejections.
func printPublishers(w io.Writer, publishers []*weftv1.PublisherStatus, now time.Time) error {
	if err := Publishers(publishers, now).write(w); err != nil {
		return err
	}
	if err := printLimits(w, publishers); err != nil {
		return err
	}
	for _, p := range publishers {
		r := p.GetLastRejection()
		if r == nil {
			continue
		}
		e := client.RejectedError{Fragment: r.GetFragment().Text(), Violations: r.GetViolations()}
		if _, err := fmt.Fprintf(w, "%v ago: %s\n", now.Sub(p.GetLastRejected().AsTime()).Round(time.Second), e.Detail()); err != nil {
			return err
		}
	}
	return nil
}
