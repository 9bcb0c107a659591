package attack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
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

// newReadHost starts a daemon with a table of 100,000 elements.
func newReadHost(t *testing.T) *host {
	h := newHost(t, options{})
	must(t, h.apply(uidBig, addresses(100_000)))
	h.base = h.memory()
	return h
}

// TestUnreadTables asks a hundred times for a table of 100,000 elements and reads nothing: its
// own, and another's.
func TestUnreadTables(t *testing.T) {
	for user, want := range map[uint32]codes.Code{uidBig: codes.ResourceExhausted, uidCNI: codes.PermissionDenied} {
		newReadHost(t).attack(func(h *host) {
			refused := 0
			var api []weftv1.InspectClient
			for range 4 {
				api = append(api, weftv1.NewInspectClient(h.as(user)))
			}
			for i := range 100 {
				stream, err := api[i%len(api)].GetTable(context.Background(), &weftv1.GetTableRequest{Family: "inet", Name: "big"})
				must(h.T, err)
				if _, err := stream.Recv(); status.Code(err) == want {
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

// TestReadLoops reads a table of 100,000 elements in eight loops.
func TestReadLoops(t *testing.T) {
	newReadHost(t).attack(func(h *host) {
		var elements, calls atomic.Int64
		loops(8, 3*time.Second, func(ctx context.Context, _ int) func() {
			api := weftv1.NewInspectClient(h.as(uidBig))
			return func() {
				calls.Add(1)
				stream, err := api.GetTable(ctx, &weftv1.GetTableRequest{Family: "inet", Name: "big"})
				for err == nil {
					var part *weftv1.GetTableResponse
					part, err = stream.Recv()
					for _, s := range part.GetSets() {
						elements.Add(int64(len(s.GetSet().GetElements())))
					}
				}
			}
		})
		h.observe("8 loops of GetTable for 3 s: %d calls, %d elements", calls.Load(), elements.Load())
	})
}

// TestReadingOthers asks in every way for what the victim has.
func TestReadingOthers(t *testing.T) {
	attack(t, options{}, func(h *host) {
		ctx := aggregatortest.Context(h.T)
		api := weftv1.NewInspectClient(h.as(uidCNI))
		watch, err := api.Watch(ctx, &weftv1.WatchRequest{})
		must(h.T, err)
		_, err = watch.Header()
		must(h.T, err)
		var seen, denied []string
		note := func(what string) func(answer string, err error) {
			return func(answer string, err error) {
				switch {
				case status.Code(err) == codes.PermissionDenied && strings.Contains(err.Error(), "no read at "):
					denied = append(denied, what)
				case err != nil && !errors.Is(err, io.EOF):
					h.Errorf("%s: %v", what, err)
				case strings.Contains(answer, "victim"):
					seen = append(seen, what)
				}
			}
		}
		fragment, err := api.GetFragment(ctx, &weftv1.GetFragmentRequest{Fragment: &weftv1.FragmentName{Publisher: "victim", Name: "rules"}})
		note("GetFragment")(received(fragment, err))
		table, err := api.GetTable(ctx, &weftv1.GetTableRequest{Family: "inet", Name: "victim", Live: true})
		note("GetTable")(received(table, err))
		for _, object := range []string{"table inet victim", "chain inet victim in", "set inet victim moving", "element inet victim listed { 10.9.0.1 }"} {
			_, err := api.Owner(ctx, &weftv1.OwnerRequest{Object: nametest.Parse(object)})
			note("Owner")("", err)
		}
		fragments, err := api.ListFragments(ctx, &weftv1.ListFragmentsRequest{})
		note("ListFragments")(received(fragments, err))
		tables, err := api.ListTables(ctx, &weftv1.ListTablesRequest{})
		note("ListTables")(received(tables, err))
		publishers, err := api.ListPublishers(ctx, &weftv1.ListPublishersRequest{})
		note("ListPublishers")(received(publishers, err))
		history := weftv1.NewHistoryClient(h.as(uidCNI))
		revisions, err := history.ListRevisions(ctx, &weftv1.ListRevisionsRequest{})
		note("ListRevisions")(received(revisions, err))
		comparison, err := history.CompareRevisions(ctx, &weftv1.CompareRevisionsRequest{})
		note("CompareRevisions")(received(comparison, err))
		// Its own rejection is the first event that it sees, after many commits of the victim.
		_ = h.applyFile(uidCNI, "f", "table inet victim { }")
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

// received returns the first part of an answer.
func received[T any](stream grpc.ServerStreamingClient[T], err error) (string, error) {
	if err != nil {
		return "", err
	}
	part, err := stream.Recv()
	return fmt.Sprint(part), err
}

// TestIdleHTTP keeps 500 connections to the metrics and the health server open.
func TestIdleHTTP(t *testing.T) {
	attack(t, options{nofile: 400}, func(h *host) {
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
