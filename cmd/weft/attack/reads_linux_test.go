package attack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/aggregator/testing/nametest"
)

// Attacks by reading: on the memory and the time of the daemon, and on what others keep to
// themselves.

// largeTable applies a table of n elements.
func (h *host) largeTable(uid uint32, name string, n int) {
	h.Helper()
	elements := make([]*weftv1.Element, n)
	for i := range elements {
		elements[i] = &weftv1.Element{Key: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)}
	}
	_, err := weftv1.NewPublisherClient(h.as(uid)).Apply(aggregatortest.Context(h.T), &weftv1.ApplyRequest{Fragment: &weftv1.Fragment{
		Name: "large", Tables: []*weftv1.Table{{Family: "inet", Name: name, Sets: []*weftv1.Set{{Name: "s", Type: "ipv4_addr", Elements: elements}}}},
	}})
	if err != nil {
		h.Fatal(err)
	}
	h.base = h.memory()
}

// TestUnreadTables asks a hundred times for a table of 100,000 elements and reads nothing: its
// own, and another's.
func TestUnreadTables(t *testing.T) {
	for user, want := range map[uint32]codes.Code{uidBig: codes.ResourceExhausted, uidCNI: codes.PermissionDenied} {
		h := newHost(t, options{})
		h.largeTable(uidBig, "big", 100_000)
		h.attack(func(h *host) {
			refused := 0
			var api []weftv1.InspectClient
			for range 4 {
				api = append(api, weftv1.NewInspectClient(h.as(user)))
			}
			for i := range 100 {
				stream, err := api[i%len(api)].GetTable(context.Background(), &weftv1.GetTableRequest{Family: "inet", Name: "big"})
				if err != nil {
					h.Fatal(err)
				}
				if code := status.Code(firstError(stream)); code == want {
					refused++
				}
			}
			h.observe("uid %d asks for 100,000 elements 100 times: %d are refused", user, refused)
			if refused < 90 {
				h.Errorf("%d of 100 are refused with %v: want 90 at least", refused, want)
			}
		})
	}
}

// firstError reads one part of an answer, and returns the error.
func firstError(stream grpc.ServerStreamingClient[weftv1.GetTableResponse]) error {
	_, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// TestReadLoops reads a table of 100,000 elements in eight loops.
func TestReadLoops(t *testing.T) {
	h := newHost(t, options{})
	h.largeTable(uidBig, "big", 100_000)
	h.attack(func(h *host) {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		var bytes, calls atomic.Int64
		for range 8 {
			api := weftv1.NewInspectClient(h.as(uidBig))
			wg.Go(func() {
				for ctx.Err() == nil {
					calls.Add(1)
					stream, err := api.GetTable(ctx, &weftv1.GetTableRequest{Family: "inet", Name: "big"})
					for err == nil {
						var part *weftv1.GetTableResponse
						if part, err = stream.Recv(); err == nil {
							for _, s := range part.GetSets() {
								bytes.Add(int64(len(s.GetSet().GetElements())))
							}
						}
					}
				}
			})
		}
		wg.Wait()
		h.observe("8 loops of GetTable for 3 s: %d calls, %d elements", calls.Load(), bytes.Load())
	})
}

// TestSmallReads calls everything that answers little, as fast as it goes.
func TestSmallReads(t *testing.T) {
	h := newHost(t, options{})
	h.attack(func(h *host) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		var calls atomic.Int64
		for range 8 {
			api := weftv1.NewInspectClient(h.as(uidCNI))
			wg.Go(func() {
				for ctx.Err() == nil {
					_, _ = api.Owner(ctx, &weftv1.OwnerRequest{Object: nametest.Parse("element inet victim listed { 10.9.0.1 }")})
					if stream, err := api.ListTables(ctx, &weftv1.ListTablesRequest{}); err == nil {
						_, _ = stream.Recv()
					}
					calls.Add(2)
				}
			})
		}
		wg.Wait()
		h.observe("8 loops of Owner and ListTables for 2 s: %d calls", calls.Load())
	})
}

// TestReadingOthers asks in every way for what the victim has.
func TestReadingOthers(t *testing.T) {
	h := newHost(t, options{})
	h.attack(func(h *host) {
		ctx := aggregatortest.Context(h.T)
		api := weftv1.NewInspectClient(h.as(uidCNI))
		watch, err := api.Watch(ctx, &weftv1.WatchRequest{})
		if err != nil {
			h.Fatal(err)
		}
		if _, err := watch.Header(); err != nil {
			h.Fatal(err)
		}
		var seen, denied []string
		note := func(what string, answer fmt.Stringer, err error) {
			switch {
			case status.Code(err) == codes.PermissionDenied && strings.Contains(err.Error(), "no read at "):
				denied = append(denied, what)
			case err != nil && !errors.Is(err, io.EOF):
				h.Errorf("%s: %v", what, err)
			case answer != nil && strings.Contains(answer.String(), "victim"):
				seen = append(seen, what)
			}
		}
		fragment, err := api.GetFragment(ctx, &weftv1.GetFragmentRequest{Fragment: &weftv1.FragmentName{Publisher: "victim", Name: "rules"}})
		if err == nil {
			_, err = fragment.Recv()
		}
		note("GetFragment", nil, err)
		table, err := api.GetTable(ctx, &weftv1.GetTableRequest{Family: "inet", Name: "victim", Live: true})
		if err == nil {
			_, err = table.Recv()
		}
		note("GetTable", nil, err)
		for _, object := range []string{"table inet victim", "chain inet victim in", "set inet victim moving", "element inet victim listed { 10.9.0.1 }"} {
			_, err := api.Owner(ctx, &weftv1.OwnerRequest{Object: nametest.Parse(object)})
			note("Owner", nil, err)
		}
		fragments, err := api.ListFragments(ctx, &weftv1.ListFragmentsRequest{})
		if err == nil {
			var part *weftv1.ListFragmentsResponse
			part, err = fragments.Recv()
			note("ListFragments", part, err)
		}
		tables, err := api.ListTables(ctx, &weftv1.ListTablesRequest{})
		if err == nil {
			var part *weftv1.ListTablesResponse
			part, err = tables.Recv()
			note("ListTables", part, err)
		}
		publishers, err := api.ListPublishers(ctx, &weftv1.ListPublishersRequest{})
		if err == nil {
			var part *weftv1.ListPublishersResponse
			part, err = publishers.Recv()
			note("ListPublishers", part, err)
		}
		history := weftv1.NewHistoryClient(h.as(uidCNI))
		revisions, err := history.ListRevisions(ctx, &weftv1.ListRevisionsRequest{})
		if err == nil {
			var part *weftv1.ListRevisionsResponse
			part, err = revisions.Recv()
			note("ListRevisions", part, err)
		}
		if comparison, err := history.CompareRevisions(ctx, &weftv1.CompareRevisionsRequest{}); err == nil {
			part, err := comparison.Recv()
			note("CompareRevisions", part, err)
		}
		// Its own rejection is the first event that it sees, after many commits of the victim.
		_, _ = weftv1.NewPublisherClient(h.as(uidCNI)).Apply(ctx, &weftv1.ApplyRequest{Fragment: &weftv1.Fragment{Name: "f", Nft: "table inet victim { }"}})
		event, err := watch.Recv()
		if err != nil || event.GetRejection().GetFragment().GetPublisher() != "cni" {
			h.Errorf("the first event is %v, %v: want the own rejection", event, err)
		}
		h.observe("reading what the victim has: %d requests are denied, %v show it", len(denied), seen)
		if len(denied) != 6 || len(seen) > 0 {
			h.Errorf("denied are %v: want 6; shown are %v: want none", denied, seen)
		}
	})
}

// TestIdleHTTP keeps 500 connections to the metrics and the health server open.
func TestIdleHTTP(t *testing.T) {
	h := newHost(t, options{nofile: 400})
	h.attack(func(h *host) {
		get := func(address string) (net.Conn, error) {
			var c net.Conn
			err := h.ns.Do(func() (err error) {
				c, err = net.DialTimeout("tcp", address, 5*time.Second)
				return err
			})
			if err != nil {
				return nil, err
			}
			h.Cleanup(func() { _ = c.Close() })
			_ = c.SetDeadline(time.Now().Add(3 * time.Minute))
			if _, err := fmt.Fprint(c, "GET /healthz HTTP/1.1\r\nHost: weft\r\n\r\n"); err != nil {
				return nil, err
			}
			b := make([]byte, 12)
			if _, err := io.ReadFull(c, b); err != nil || string(b) != "HTTP/1.1 200" {
				return nil, fmt.Errorf("answer %q: %w", b, err)
			}
			return c, nil
		}
		for i := range 500 {
			if _, err := get([]string{"127.0.0.1:10249", "127.0.0.1:10256"}[i%2]); err != nil {
				h.Fatalf("connection %d: %v", i, err)
			}
		}
		_, err := weftv1.NewInspectClient(h.as(uidBig)).GetInfo(aggregatortest.Context(h.T), &weftv1.GetInfoRequest{})
		h.observe("500 keep-alive connections: the next probe is answered with %d, a publisher with %v", http.StatusOK, status.Code(err))
		if err != nil {
			h.Errorf("a publisher: %v", err)
		}
	})
}
