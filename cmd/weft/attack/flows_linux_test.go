package attack

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ti-mo/conntrack"
	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// Attacks by the right to conntrack entries: on the time of the daemon and of the kernel.

const (
	uidCutter = 1236
	uidJudge  = 1237
	// cutters have the right.
	cutters = configuration + `- name: cutter
  match: {uid: 1236}
  flows: true
- name: judge
  match: {uid: 1237}
  flows: true
`
	// manyFlows are enough for a reader that never reads to be noticed.
	manyFlows = 50_000
)

// newFlowHost starts a daemon whose node has many connections.
func newFlowHost(t *testing.T) *host {
	h := newHost(t, options{config: cutters})
	must(t, h.ns.Do(func() error {
		conn, err := conntrack.Dial(nil)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		to := netip.AddrFrom4([4]byte{10, 1, 0, 1})
		for i := range manyFlows {
			from := netip.AddrFrom4([4]byte{10, 2, byte(i >> 14), 1})
			f := conntrack.NewFlow(17, conntrack.StatusConfirmed|conntrack.StatusAssured, from, to, uint16(1024+i&0x3fff), 53, 3600, 0) //nolint:gosec // a port
			if err := conn.Create(f); err != nil {
				return err
			}
		}
		return nil
	}))
	h.base = h.memory()
	return h
}

// flows returns the calls of a user.
func (h *host) flows(uid uint32) weftv1.FlowsClient { return weftv1.NewFlowsClient(h.as(uid)) }

// list reads a listing, and returns the number of its entries.
func list(ctx context.Context, c weftv1.FlowsClient, req *weftv1.ListFlowsRequest) (int, error) {
	stream, err := c.ListFlows(ctx, req)
	n := 0
	for err == nil {
		var part *weftv1.ListFlowsResponse
		if part, err = stream.Recv(); err == nil {
			n += len(part.GetFlows())
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// count counts a call; after a refusal it waits.
func count(err error, made, refused *atomic.Int64) {
	switch status.Code(err) {
	case codes.OK:
		made.Add(1)
	case codes.ResourceExhausted:
		refused.Add(1)
		<-time.After(10 * time.Millisecond)
	}
}

// TestListingFlows lists a hundred times at once, with as many addresses as there can be, again
// and again. Another publisher with the right gets its listings.
func TestListingFlows(t *testing.T) {
	newFlowHost(t).attack(func(h *host) {
		ctx, cancel := context.WithCancel(aggregatortest.Context(h.T))
		defer cancel()
		began := time.Now()
		addrs := make([][]byte, 16_384)
		for i := range addrs {
			addrs[i] = []byte{10, 3, byte(i >> 8), byte(i)}
		}
		reqs := []*weftv1.ListFlowsRequest{{All: true}, {Addresses: addrs}}
		huge := &weftv1.ListFlowsRequest{Addresses: slices.Repeat([][]byte{{}}, 8_000_000)}
		var made, refused atomic.Int64
		var wg sync.WaitGroup
		for i := range 100 {
			c := h.flows(uidCutter)
			wg.Go(func() {
				for ctx.Err() == nil {
					_, err := list(ctx, c, reqs[i%2])
					count(err, &made, &refused)
				}
			})
		}
		judging := aggregatortest.Context(h.T)
		if _, err := list(judging, h.flows(uidCutter), huge); status.Code(err) != codes.ResourceExhausted {
			h.Errorf("a listing of 8,000,000 addresses: %v", err)
		}
		n, err := list(judging, h.flows(uidJudge), &weftv1.ListFlowsRequest{All: true})
		if err != nil || n != manyFlows {
			h.Errorf("another publisher lists %d flows, %v: want %d", n, err, manyFlows)
		}
		aggregatortest.Eventually(h.T, "a listing of the loops", func() bool { return made.Load() > 0 })
		<-time.After(time.Until(began.Add(5 * time.Second)))
		took := time.Since(began)
		cancel()
		wg.Wait()
		h.observe("100 loops of ListFlows for %v beside %d flows: %d are made, %d refused", took.Round(time.Second), manyFlows, made.Load(), refused.Load())
		if float64(made.Load()) > 10*took.Seconds() {
			h.Errorf("%d listings are made in %v: want at most ten a second", made.Load(), took)
		}
	})
}

// TestUnreadFlows lists and never reads, over several connections. The listing ends, and another
// publisher deletes in the meantime, and lists after that.
func TestUnreadFlows(t *testing.T) {
	newFlowHost(t).attack(func(h *host) {
		began := time.Now()
		req := aggregatortest.Message(&weftv1.ListFlowsRequest{All: true})
		ended := make(chan string, 4)
		var unread []*aggregatortest.Raw
		for range cap(ended) {
			r := h.raw(uidCutter, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
			r.Publisher = "cutter"
			unread = append(unread, r)
			id := r.Open(weftv1.Flows_ListFlows_FullMethodName)
			must(h.T, r.Send(id, req, true))
			go func() {
				r.Read(func(http2.Frame) bool { return r.Ended(id) != "" })
				ended <- r.Ended(id)
			}()
		}
		// Two of the four are refused at once.
		for range 2 {
			if code := <-ended; code != "8" {
				h.Errorf("a listing beyond the second ends with status %q: want 8, RESOURCE_EXHAUSTED", code)
			}
		}
		judge, ctx := h.flows(uidJudge), aggregatortest.Context(h.T)
		deleting := time.Now()
		if _, err := judge.DeleteFlows(ctx, &weftv1.DeleteFlowsRequest{Flows: []*weftv1.Flow{{Protocol: 17, Source: []byte{10, 9, 9, 9}, Destination: []byte{10, 9, 9, 8}}}}); err != nil {
			h.Error(err)
		}
		deleted := time.Since(deleting)
		n, err := list(ctx, judge, &weftv1.ListFlowsRequest{All: true})
		listed := time.Since(began)
		if err != nil || n != manyFlows {
			h.Errorf("another publisher lists %d flows, %v: want %d", n, err, manyFlows)
		}
		// The status comes after the parts that are sent already.
		for _, r := range unread {
			_, _ = r.Frames().WriteWindowUpdate(0, 1<<20), r.Frames().WriteWindowUpdate(1, 1<<20)
		}
		if code := <-ended; code != "8" {
			h.Errorf("a listing that is not read ends with status %q: want 8, RESOURCE_EXHAUSTED", code)
		}
		h.observe("a listing that is not read ends: another publisher deletes in %v, and lists %v after its begin", deleted.Round(time.Millisecond), listed.Round(time.Millisecond))
		if deleted > time.Second || listed > 15*time.Second {
			h.Errorf("another publisher deletes in %v and lists after %v: want at most 1 s and 15 s", deleted, listed)
		}
	})
}

// TestDeletingFlows deletes in eight loops what is not there, and what is.
func TestDeletingFlows(t *testing.T) {
	newFlowHost(t).attack(func(h *host) {
		flows := make([]*weftv1.Flow, 4096)
		for i := range flows {
			flows[i] = &weftv1.Flow{Protocol: 17, Source: []byte{10, 2, 0, 1}, SourcePort: uint32(1024 + i), Destination: []byte{10, 1, 0, 1}, DestinationPort: 53} //nolint:gosec // small
		}
		var made, refused, deleted atomic.Int64
		loops(8, 3*time.Second, func(ctx context.Context, _ int) func() {
			c := h.flows(uidCutter)
			return func() {
				resp, err := c.DeleteFlows(ctx, &weftv1.DeleteFlowsRequest{Flows: flows})
				count(err, &made, &refused)
				deleted.Add(int64(resp.GetDeleted()))
			}
		})
		h.observe("8 loops of DeleteFlows with ids that are not known, for 3 s: %d are made, %d refused, %d flows are deleted", made.Load(), refused.Load(), deleted.Load())
		if made.Load() == 0 || deleted.Load() != 0 {
			h.Errorf("%d calls delete %d flows: want some, and none", made.Load(), deleted.Load())
		}
	})
}
