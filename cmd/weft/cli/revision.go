package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

const (
	minDigits = 5
	// whole is below every revision: revisions begin with the milliseconds since 1970.
	whole   = 1_000_000_000_000
	page    = 256
	offered = 40
)

// RevisionHelp explains short forms.
const RevisionHelp = `Tables show the last digits of a revision, and every verb accepts them: they mean the newest
revision that ends in them. With -o json revisions are whole.`

// ShortRevision returns the last digits of revision, unique until last is twice as far away, or all
// digits if last is 0.
func ShortRevision(revision, last uint64) string {
	text := strconv.FormatUint(revision, 10)
	if last < revision {
		return text
	}
	digits, span := minDigits, uint64(100_000)
	for ; (last-revision)*2 >= span && span <= whole; span *= 10 {
		digits++
	}
	return text[max(0, len(text)-digits):]
}

// FindRevision returns a whole number, or the newest revision with these last digits.
//
// Possible errors: a *UsageError, the errors of client.Client.ListRevisions, no match.
func FindRevision(ctx context.Context, c *client.Client, arg string) (uint64, error) {
	n, err := strconv.ParseUint(arg, 10, 64)
	switch {
	case err != nil:
		return 0, Usagef("%q is not a revision: want a number that weft history shows", arg)
	case n >= whole:
		return n, nil
	case len(arg) < minDigits:
		return 0, Usagef("%q is too short for a revision: give at least its last %d digits", arg, minDigits)
	}
	for req := (&weftv1.ListRevisionsRequest{Limit: page}); ; {
		list, err := c.ListRevisions(ctx, req)
		if err != nil {
			return 0, err
		}
		revisions := list.GetRevisions()
		for _, r := range revisions {
			if strings.HasSuffix(strconv.FormatUint(r.GetRevision(), 10), arg) {
				return r.GetRevision(), nil
			}
		}
		if len(revisions) < page {
			return 0, fmt.Errorf("no revision in the history ends in %s: weft history lists them", arg)
		}
		req.Before = revisions[len(revisions)-1].GetRevision()
	}
}

// CompleteRevisions completes a revision.
func (c *Connection) CompleteRevisions(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return c.complete(cmd, func(ctx context.Context, cl *client.Client) (words []string, err error) {
		list, err := cl.ListRevisions(ctx, &weftv1.ListRevisionsRequest{Limit: offered})
		var last uint64
		for _, r := range list.GetRevisions() {
			last = max(last, r.GetRevision())
			names := Map(r.GetFragments(), func(f *weftv1.FragmentChange) string { return f.GetFragment().Text() })
			words = append(words, ShortRevision(r.GetRevision(), last)+"\t"+r.GetTime().AsTime().Local().Format("15:04:05 ")+Some(names))
		}
		return words, err
	})
}
