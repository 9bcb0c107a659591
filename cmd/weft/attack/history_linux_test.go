package attack

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// TestHistoryLoops fills the history with content, and compares its revisions in eight loops, of
// which four read nothing.
func TestHistoryLoops(t *testing.T) {
	h := newHost(t, options{})
	ctx := aggregatortest.Context(t)
	publish := weftv1.NewPublisherClient(h.as(uidBig))
	elements := make([]*weftv1.Element, 2500)
	var first uint64
	for turn := range 20 {
		for i := range elements {
			elements[i] = &weftv1.Element{Key: address(i), Comment: strings.Repeat("x", 100+turn)}
		}
		applied, err := publish.Apply(ctx, &weftv1.ApplyRequest{Fragment: &weftv1.Fragment{
			Name: "large", Tables: []*weftv1.Table{{Family: "inet", Name: "big", Sets: []*weftv1.Set{{Name: "s", Type: "ipv4_addr", Elements: elements}}}},
		}})
		must(t, err)
		if first == 0 {
			first = applied.GetRevision()
		}
	}
	h.base = h.memory()
	h.attack(func(h *host) {
		var calls, parts, refused atomic.Int64
		loops(8, 3*time.Second, func(ctx context.Context, i int) func() {
			api := weftv1.NewHistoryClient(h.as(uidBig))
			return func() {
				calls.Add(1)
				stream, err := api.CompareRevisions(ctx, &weftv1.CompareRevisionsRequest{From: first})
				for err == nil {
					if i%2 == 0 {
						<-ctx.Done()
					}
					if _, err = stream.Recv(); err == nil {
						parts.Add(1)
					}
				}
				if status.Code(err) == codes.ResourceExhausted {
					refused.Add(1)
				}
				if list, err := api.ListRevisions(ctx, &weftv1.ListRevisionsRequest{}); err == nil {
					_, _ = list.Recv()
				}
			}
		})
		h.observe("8 loops of CompareRevisions for 3 s: %d calls, %d refused, %d parts", calls.Load(), refused.Load(), parts.Load())
		if parts.Load() == 0 || refused.Load() == 0 {
			h.Error("no comparison is answered, or none refused")
		}
	})
}
