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

// printPublishers prints a row for each publisher, then the last rejections.
func printPublishers(w io.Writer, publishers []*weftv1.PublisherStatus, now time.Time) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "PUBLISHER\tSESSIONS\tPENDING\tFRAGMENTS\tADOPTED\tRULES\tELEMENTS\tSHADOWED\tCOMMITTED\tREJECTED")
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
		fmt.Fprintf(tw, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", p.GetName(), strings.Join(sessions, ", "), pending,
			p.GetFragments(), p.GetAdopted(), p.GetRules(), p.GetElements(), p.GetShadowed(), p.GetCommitted(), p.GetRejected())
	}
	if err := tw.Flush(); err != nil {
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
