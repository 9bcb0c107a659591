package attack

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// victimTable is what the victim publishes. It moves the element of set moving.
const victimTable = `table inet victim {
	set listed { type ipv4_addr; elements = { 10.9.0.1 } }
	set moving { type ipv4_addr; elements = { 10.9.1.0 } }
	chain in {
		type filter hook input priority 10; policy accept;
		ip saddr @listed drop
		ip saddr @moving drop
	}
}
`

// victim is a publisher that behaves well.
type victim struct {
	stream grpc.BidiStreamingClient[weftv1.PublishRequest, weftv1.PublishResponse]
	id     uint64
	moved  int

	stop, done chan struct{}
	// took has the times of the updates, lost the error that ended them, and most the
	// greatest memory of the daemon meanwhile. They belong to start's goroutine until
	// end has returned.
	took []time.Duration
	lost error
	most int
}

func newVictim(h *host) *victim {
	h.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	h.Cleanup(cancel)
	v := h.stream(ctx, uidVictim)
	must(h.T, v.put(&weftv1.Fragment{Name: "rules", Nft: victimTable}))
	// The commits that are made without a wait after an idle time are used up.
	for range aggregator.DefaultBurst + 5 {
		must(h.T, v.move())
	}
	return v
}

// stream opens a stream of updates as a user.
func (h *host) stream(ctx context.Context, uid uint32) *victim {
	h.Helper()
	stream, err := weftv1.NewPublisherClient(h.as(uid)).Publish(ctx)
	must(h.T, err)
	return &victim{stream: stream, stop: make(chan struct{}), done: make(chan struct{})}
}

// update sends an update and waits for its acknowledgement.
func (v *victim) update(req *weftv1.PublishRequest) error {
	v.id++
	req.Id = v.id
	if err := v.stream.Send(req); err != nil {
		return err
	}
	resp, err := v.stream.Recv()
	if err != nil {
		return err
	}
	if resp.GetId() != v.id || resp.GetCommitted() == nil {
		return &refusal{resp}
	}
	return nil
}

// refusal is an answer that is not an acknowledgement.
type refusal struct{ *weftv1.PublishResponse }

func (r *refusal) Error() string { return r.String() }

func (v *victim) put(f *weftv1.Fragment) error {
	return v.update(&weftv1.PublishRequest{Update: &weftv1.PublishRequest_Snapshot{Snapshot: f}})
}

func (v *victim) patch(fragment string, p *weftv1.TablePatch) error {
	patch := &weftv1.Patch{Fragment: fragment, Tables: []*weftv1.TablePatch{p}}
	return v.update(&weftv1.PublishRequest{Update: &weftv1.PublishRequest_Patch{Patch: patch}})
}

// move replaces the one element of the moving set.
func (v *victim) move() error {
	address := func(n int) string { return fmt.Sprintf("10.9.1.%d", n%200) }
	v.moved++
	return v.patch("rules", &weftv1.TablePatch{Family: "inet", Name: "victim", Elements: []*weftv1.ElementPatch{{
		Set: "moving", Add: []*weftv1.Element{{Key: address(v.moved)}}, Remove: []string{address(v.moved - 1)},
	}}})
}

// start makes updates until end, and looks at the memory of the daemon.
func (v *victim) start(h *host) {
	go func() {
		defer close(v.done)
		tick := time.NewTicker(between)
		defer tick.Stop()
		for {
			v.most = max(v.most, h.memory())
			began := time.Now()
			if v.lost = v.move(); v.lost != nil {
				return
			}
			v.took = append(v.took, time.Since(began))
			select {
			case <-v.stop:
				return
			case <-tick.C:
			}
		}
	}()
}

// end ends the updates.
func (v *victim) end() {
	close(v.stop)
	<-v.done
}

// percentile returns the time within which p in 100 updates were made.
func (v *victim) percentile(p int) time.Duration {
	if len(v.took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(v.took))
	return sorted[min(len(sorted)*p/100, len(sorted)-1)]
}
