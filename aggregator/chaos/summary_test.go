package chaos

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

// summary is what a run did.
type summary struct {
	acked, rejected, poisoned, unknown                                     int
	aggregatorKills, publisherKills, restarts, outages, stops, disconnects int
	foreign, forbidden, damages, large, quiet, down, durable               int
	// repairs is how many repairs were timed, slowest the longest.
	repairs int
	slowest time.Duration
}

func (s *summary) repaired(d time.Duration) {
	s.repairs++
	s.slowest = max(s.slowest, d)
}

// watcher counts what the aggregators tell.
type watcher struct {
	commits, drifts, rejections atomic.Uint64
	cancel                      context.CancelFunc
	done                        chan struct{}
}

// watch follows all aggregators on a socket, until close.
func watch(socket string) *watcher {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watcher{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for ctx.Err() == nil {
			w.once(ctx, socket)
		}
	}()
	return w
}

func (w *watcher) once(ctx context.Context, socket string) {
	c, err := client.Dial(ctx, client.Config{Socket: socket, Publisher: "conductor", DialTimeout: patience})
	if err != nil {
		return
	}
	defer c.Close()
	// It ends when the aggregator does.
	_ = c.Watch(ctx, func(e *weftv1.WatchResponse) error {
		switch e.GetEvent().(type) {
		case *weftv1.WatchResponse_Commit:
			w.commits.Add(1)
		case *weftv1.WatchResponse_Drift:
			w.drifts.Add(1)
		case *weftv1.WatchResponse_Rejection:
			w.rejections.Add(1)
		}
		return nil
	})
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Millisecond):
	}
}

func (w *watcher) close() {
	w.cancel()
	<-w.done
}

// report prints the run in a few lines.
func (c *conductor) report(bytes uint64, took time.Duration) string {
	s := &c.sum
	out := fmt.Sprintf("seed %d, %s, %v: %d steps, %d quiet points and %d looks at the kernel of a killed aggregator\n",
		c.seed, c.mode(), took.Round(time.Second/10), c.step, s.quiet, s.down)
	out += fmt.Sprintf("  updates: %d acknowledged, %d rejected (%d poisoned, by the kernel), %d unknown; %d large snapshots; at least %d commits, %d repairs\n",
		s.acked, s.rejected, s.poisoned, s.unknown, s.large, c.watcher.commits.Load(), c.watcher.drifts.Load())
	out += fmt.Sprintf("  aggregator: %d killed, %d restarted, %d outages with damage (%d durable fragments back by themselves); publishers: %d killed, %d stopped, %d disconnected\n",
		s.aggregatorKills, s.restarts, s.outages, s.durable, s.publisherKills, s.stops, s.disconnects)
	out += fmt.Sprintf("  foreign process: %d times, %d refused, %d changes made; stream: %d bytes there and back",
		s.foreign, s.forbidden, s.damages, bytes)
	if s.repairs > 0 {
		out += fmt.Sprintf("; slowest of %d timed repairs %v", s.repairs, s.slowest.Round(time.Millisecond))
	}
	return out
}

func (c *conductor) mode() string {
	if c.owned {
		return "tables owned"
	}
	return "tables open"
}
