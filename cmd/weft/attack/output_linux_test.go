package attack

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/printable"
)

// Attacks on what people read: logs, events and listings; and on what is kept of refusals.

// publish opens a stream and returns a function that sends an update and returns its
// outcome.
func (h *host) publish(uid uint32) func(*weftv1.PublishRequest) *weftv1.PublishResponse {
	h.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	h.Cleanup(cancel)
	stream, err := weftv1.NewPublisherClient(h.as(uid)).Publish(ctx)
	if err != nil {
		h.Fatal(err)
	}
	id := uint64(0)
	return func(req *weftv1.PublishRequest) *weftv1.PublishResponse {
		id++
		req.Id = id
		if err := stream.Send(req); err != nil {
			h.Fatal(err)
		}
		resp, err := stream.Recv()
		if err != nil {
			h.Fatal(err)
		}
		return resp
	}
}

// watch counts the bytes of the events that root is sent, until the test ends.
func (h *host) watch() (bytes func() int) {
	h.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := weftv1.NewInspectClient(h.as(0)).Watch(ctx, &weftv1.WatchRequest{}, grpc.MaxCallRecvMsgSize(64<<20))
	if err != nil {
		h.Fatal(err)
	}
	if _, err := stream.Header(); err != nil {
		h.Fatal(err)
	}
	events := make(chan *weftv1.WatchResponse, 1<<16)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			ev, err := stream.Recv()
			if err != nil {
				return
			}
			events <- ev
		}
	}()
	return func() int {
		time.AfterFunc(200*time.Millisecond, cancel)
		<-done
		close(events)
		n := 0
		for ev := range events {
			if ev.GetRejection() != nil {
				n += proto.Size(ev)
			}
		}
		return n
	}
}

// TestRefusedUpdateIsNotQuoted has 14 MiB refused in ways that quote them.
func TestRefusedUpdateIsNotQuoted(t *testing.T) {
	h := newHost(t, options{})
	h.attack(func(h *host) {
		events := h.watch()
		long := strings.Repeat("x", 14<<20)
		api := weftv1.NewPublisherClient(h.as(uidBig))
		short := long[:1<<20]
		for _, f := range []*weftv1.Fragment{
			{Name: "f", Tables: []*weftv1.Table{{Family: "inet", Name: "big", Chains: []*weftv1.Chain{{Name: "c", Type: short}}}}},
			{Name: "f", Tables: []*weftv1.Table{{Family: "inet", Name: "big", Sets: []*weftv1.Set{{Name: "s", Type: short}}}}},
			{Name: "f", Nft: "table inet big { chain c { " + short + " } }"},
			{Name: "f", Tables: []*weftv1.Table{{Family: "inet", Name: "big", Objects: []*weftv1.Object{{Kind: long, Name: "o"}}}}},
		} {
			if _, err := api.Apply(aggregatortest.Context(h.T), &weftv1.ApplyRequest{Fragment: f}); status.Code(err) != codes.InvalidArgument || len(err.Error()) > 16<<10 {
				h.Errorf("%v with %d bytes", status.Code(err), len(err.Error()))
			}
		}
		sent, logged := events(), len(h.log.String())
		h.observe("refused updates of 1 and 14 MiB: %d bytes of events, %d bytes of log", sent, logged)
		if sent > 256<<10 || logged > 256<<10 {
			h.Errorf("%d bytes of events and %d bytes of log", sent, logged)
		}
	})
}

// TestRefusalsAreLoggedOnce has 1,000 updates refused.
func TestRefusalsAreLoggedOnce(t *testing.T) {
	h := newHost(t, options{})
	h.attack(func(h *host) {
		push := h.publish(uidBig)
		for range 1000 {
			push(&weftv1.PublishRequest{Update: &weftv1.PublishRequest_Snapshot{Snapshot: &weftv1.Fragment{Name: "f", Nft: "table inet big { chain c { nonsense } }"}}})
		}
		for range 1000 {
			push(&weftv1.PublishRequest{Update: &weftv1.PublishRequest_Snapshot{Snapshot: &weftv1.Fragment{Name: "f", Nft: "table inet other { }"}}})
		}
		lines := strings.Count(h.log.String(), "\n") - strings.Count(h.log.String(), "msg=committed")
		h.observe("2,000 refused updates: %d lines of log", lines)
		if lines > 40 {
			h.Errorf("%d lines of log", lines)
		}
	})
}

// TestRefusedSnapshots sends refused snapshots under new names on one stream.
func TestRefusedSnapshots(t *testing.T) {
	h := newHost(t, options{})
	h.attack(func(h *host) {
		push := h.publish(uidBig)
		rejected := 0
		for i := range 60 {
			f := &weftv1.Fragment{Name: fmt.Sprintf("f%d", i), Tables: []*weftv1.Table{{Family: "inet", Name: "big", Chains: []*weftv1.Chain{
				{Name: "c", Rules: []*weftv1.Rule{{Text: "jump nowhere"}}},
			}}}}
			for j := range 1500 {
				f.Tables[0].Sets = append(f.Tables[0].Sets, &weftv1.Set{Name: fmt.Sprintf("set_%d_%d", i, j), Type: "ipv4_addr . inet_service", Comment: strings.Repeat("c", 100)})
			}
			if push(&weftv1.PublishRequest{Update: &weftv1.PublishRequest_Snapshot{Snapshot: f}}).GetRejected() != nil {
				rejected++
			}
		}
		h.observe("%d refused snapshots of 1,500 sets under new names on one stream", rejected)
		if rejected != 60 {
			h.Errorf("%d snapshots were rejected", rejected)
		}
	})
}

// TestControlCharacters sends terminal sequences in all kinds of strings, and looks for
// them in the log.
func TestControlCharacters(t *testing.T) {
	h := newHost(t, options{})
	h.attack(func(h *host) {
		accepted := 0
		for _, bad := range []string{"\x1b[2J", "\u009b2J", "\u202e", "\u2066", "\u2028"} {
			for _, f := range []*weftv1.Fragment{
				{Name: "f", Nft: `table inet cni { chain c { log prefix "` + bad + `" ; } ; }`},
				{Name: "f", Nft: `table inet cni { set s { type ifname ; elements = { "` + bad + `" } ; } ; }`},
				{Name: "f", Tables: []*weftv1.Table{{Family: "inet", Name: "cni" + bad}}},
				{Name: "f", Tables: []*weftv1.Table{{Family: "inet", Name: "cni", Comment: bad}}},
				{Name: "f", Tables: []*weftv1.Table{{Family: "inet", Name: "cni", Sets: []*weftv1.Set{{Name: "s" + bad, Type: "ipv4_addr"}}}}},
				{Name: "f" + bad},
			} {
				_, err := weftv1.NewPublisherClient(h.as(uidCNI)).Apply(aggregatortest.Context(h.T), &weftv1.ApplyRequest{Fragment: f})
				if err == nil {
					accepted++
				}
			}
		}
		h.observe("30 updates with terminal sequences: %d are accepted", accepted)
		if accepted > 0 {
			h.Errorf("%d are accepted", accepted)
		}
		for line := range bytes.Lines([]byte(h.log.String())) {
			if line := strings.TrimSuffix(string(line), "\n"); printable.Index(line) >= 0 {
				h.Errorf("the log has %q", line)
			}
		}
	})
}
