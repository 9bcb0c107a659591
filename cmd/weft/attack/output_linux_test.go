package attack

import (
	"bytes"
	"context"
	"errors"
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

// rejects publishes a fragment that is to be rejected.
func (h *host) rejects(v *victim, f *weftv1.Fragment) {
	h.Helper()
	if rejected := (*refusal)(nil); !errors.As(v.put(f), &rejected) || rejected.GetRejected() == nil {
		h.Fatalf("fragment %s: %v", f.GetName(), rejected)
	}
}

// watch counts the bytes of the events that root is sent, until the test ends.
func (h *host) watch() (bytes func() int) {
	h.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := weftv1.NewInspectClient(h.as(0)).Watch(ctx, &weftv1.WatchRequest{}, grpc.MaxCallRecvMsgSize(64<<20))
	must(h.T, err)
	_, err = stream.Header()
	must(h.T, err)
	size := make(chan int)
	go func() {
		n := 0
		for {
			ev, err := stream.Recv()
			if err != nil {
				size <- n
				return
			}
			if ev.GetRejection() != nil {
				n += proto.Size(ev)
			}
		}
	}()
	return func() int {
		time.AfterFunc(200*time.Millisecond, cancel)
		return <-size
	}
}

// TestRefusedUpdateIsNotQuoted has 14 MiB refused in ways that quote them.
func TestRefusedUpdateIsNotQuoted(t *testing.T) {
	attack(t, options{}, func(h *host) {
		events := h.watch()
		long := strings.Repeat("x", 14<<20)
		short := long[:1<<20]
		for _, f := range []*weftv1.Fragment{
			{Name: "f", Tables: []*weftv1.Table{{Family: "inet", Name: "big", Chains: []*weftv1.Chain{{Name: "c", Type: short}}}}},
			{Name: "f", Tables: []*weftv1.Table{{Family: "inet", Name: "big", Sets: []*weftv1.Set{{Name: "s", Type: short}}}}},
			{Name: "f", Nft: "table inet big { chain c { " + short + " } }"},
			{Name: "f", Tables: []*weftv1.Table{{Family: "inet", Name: "big", Objects: []*weftv1.Object{{Kind: long, Name: "o"}}}}},
		} {
			if err := h.apply(uidBig, f); status.Code(err) != codes.InvalidArgument || len(err.Error()) > 16<<10 {
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

// TestRefusedSnapshots sends refused snapshots under new names on one stream.
func TestRefusedSnapshots(t *testing.T) {
	attack(t, options{}, func(h *host) {
		v := h.stream(aggregatortest.Context(h.T), uidBig)
		for i := range 60 {
			f := &weftv1.Fragment{Name: fmt.Sprintf("f%d", i), Tables: []*weftv1.Table{{Family: "inet", Name: "big", Chains: []*weftv1.Chain{
				{Name: "c", Rules: []*weftv1.Rule{{Text: "jump nowhere"}}},
			}}}}
			for j := range 1500 {
				f.Tables[0].Sets = append(f.Tables[0].Sets, &weftv1.Set{Name: fmt.Sprintf("set_%d_%d", i, j), Type: "ipv4_addr . inet_service", Comment: strings.Repeat("c", 100)})
			}
			h.rejects(v, f)
		}
		h.observe("60 refused snapshots of 1,500 sets under new names on one stream")
	})
}

// TestControlCharacters sends terminal sequences in all kinds of strings, and looks for
// them in the log.
func TestControlCharacters(t *testing.T) {
	attack(t, options{}, func(h *host) {
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
				if h.apply(uidCNI, f) == nil {
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
