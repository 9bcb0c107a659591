package get

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/cmd/weft/cli"
)

var changeSigns = map[weftv1.FragmentChange_Kind]string{
	weftv1.FragmentChange_KIND_ADDED: "+", weftv1.FragmentChange_KIND_WITHDRAWN: "-", weftv1.FragmentChange_KIND_LOST: "-",
}

// Revisions returns a row for each commit. The newest revision shortens the others; 0 does not.
func Revisions(commits []*weftv1.Revision, newest uint64) *Rows {
	t := newRows("REVISION", "TIME", "FRAGMENTS", "SIZE", "WAIT", "BUILD", "KERNEL", "CHANGES")
	round := func(d *durationpb.Duration) time.Duration { return d.AsDuration().Round(10 * time.Microsecond) }
	for _, r := range commits {
		names := cli.Map(r.GetFragments(), func(f *weftv1.FragmentChange) string { return changeSigns[f.GetKind()] + f.GetFragment().Text() })
		changes := cli.Counts(r.GetChanges())
		if n := r.GetLost(); n > 0 {
			changes += fmt.Sprintf(" (and %d commits before it that could not be recorded)", n)
		}
		t.Add(cli.ShortRevision(r.GetRevision(), newest), r.GetTime().AsTime().Local().Format("2006-01-02 15:04:05.000"), cli.Some(names), r.GetSize(),
			round(r.GetWait()), round(r.GetBuild()), round(r.GetKernel()), changes)
	}
	return t
}
