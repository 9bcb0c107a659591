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
	stream, err := weftv1.NewPublisherClient(h.as(uidVictim)).Publish(ctx)
	if err != nil {
		h.Fatal(err)
	}
	v := &victim{stream: stream, stop: make(chan struct{}), done: make(chan struct{})}
	if err := v.update(&weftv1.PublishRequest{Update: &weftv1.PublishRequest_Snapshot{Snapshot: &weftv1.Fragment{Name: "rules", Nft: victimTable}}}); err != nil {
		h.Fatal(err)
	}
	// The commits that are made without a wait after an idle time are used up.
	for range aggregator.DefaultBurst + 5 {
		if err := v.move(); err != nil {
			h.Fatal(err)
		}
	}
	return v
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
		return fmt.Errorf("update %d: %v", v.id, resp)
	}
	return nil
}

// move replaces the one element of the moving set.
func (v *victim) move() error {
	address := func(n int) string { return fmt.Sprintf("10.9.1.%d", n%200) }
	v.moved++
	return v.update(&weftv1.PublishRequest{Update: &weftv1.PublishRequest_Patch{Patch: &weftv1.Patch{
		Fragment: "rules", Tables: []*weftv1.TablePatch{{Family: "inet", Name: "victim", Elements: []*weftv1.ElementPatch{{
			Set: "moving", Add: []*weftv1.Element{{Key: address(v.moved)}}, Remove: []string{address(v.moved - 1)},
		}}}},
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
