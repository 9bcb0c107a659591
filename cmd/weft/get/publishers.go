package get

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
)

var publishers = asking((*client.Client).ListPublishers, Publishers)

// limitRows shows "12/100", or "12" without a limit, and is nil if limits are unknown.
func limitRows(publishers []*weftv1.PublisherStatus) *Rows {
	if len(publishers) == 0 || len(publishers[0].GetLimits()) == 0 {
		return nil
	}
	names := cli.Map(publishers[0].GetLimits(), func(l *weftv1.LimitStatus) string { return strings.ToUpper(l.GetName()) })
	t := newRows(append([]string{"LIMITS OF"}, names...)...)
	for _, p := range publishers {
		cells := []any{p.GetName()}
		for _, l := range p.GetLimits() {
			used := fmt.Sprint(l.GetUsed())
			if l.GetLimit() > 0 {
				used += fmt.Sprintf("/%d", l.GetLimit())
			}
			cells = append(cells, used)
		}
		t.Add(cells...)
	}
	return t
}

// Publishers returns a row for each publisher, with limits and rejections.
func Publishers(answer *weftv1.ListPublishersResponse, now time.Time) *Rows {
	t := newRows("PUBLISHER", "SESSIONS", "PENDING", "FRAGMENTS", "ADOPTED", "RULES", "ELEMENTS", "SHADOWED", "COMMITTED", "REJECTED")
	t.more = limitRows(answer.GetPublishers())
	for _, p := range answer.GetPublishers() {
		var sessions []string
		pending := uint32(0)
		for _, s := range p.GetSessions() {
			sessions = append(sessions, fmt.Sprintf("pid %d uid %d for %v", s.GetPid(), s.GetUid(), now.Sub(s.GetSince().AsTime()).Round(time.Second)))
			pending += s.GetPending()
		}
		t.Add(p.GetName(), cmp.Or(strings.Join(sessions, ", "), "-"), pending,
			p.GetFragments(), p.GetAdopted(), p.GetRules(), p.GetElements(), p.GetShadowed(), p.GetCommitted(), p.GetRejected())
		if r := p.GetLastRejection(); r != nil {
			e := client.RejectedError{Fragment: r.GetFragment().Text(), Violations: r.GetViolations()}
			t.note("%v ago: %s", now.Sub(p.GetLastRejected().AsTime()).Round(time.Second), e.Detail())
		}
	}
	return t
}
