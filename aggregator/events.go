package aggregator

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// watcherBuffer is how many events a watcher may lag behind before it is
// dropped.
const watcherBuffer = 256

// hub hands events to watchers. It never waits for one.
type hub struct {
	now func() time.Time

	mu       sync.Mutex
	watchers map[*watcher]struct{}
	closed   bool
}

type watcher struct {
	events chan *weftv1.WatchResponse
	// err is why events was closed.
	err error
}

func newHub(now func() time.Time) *hub {
	return &hub{now: now, watchers: make(map[*watcher]struct{})}
}

// watched reports whether an event would have a watcher.
func (h *hub) watched() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.watchers) > 0
}

// publish hands an event to all watchers; the event belongs to the hub.
func (h *hub) publish(e *weftv1.WatchResponse) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e.Time = timestamppb.New(h.now())
	for w := range h.watchers {
		select {
		case w.events <- e:
		default:
			h.drop(w, ErrSlowWatcher)
		}
	}
}

// drop ends a watcher.
func (h *hub) drop(w *watcher, err error) {
	w.err = err
	delete(h.watchers, w)
	close(w.events)
}

// close ends all watchers.
func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for w := range h.watchers {
		h.drop(w, ErrStopped)
	}
}

// Watch calls f with every event from now on until ctx ends or f fails, and
// returns that error. It calls started first, when events are being collected, and
// returns its error too. started must not be nil. f must not change the event.
//
// Possible errors: ErrSlowWatcher, ErrStopped, those of started and f, ctx's.
func (a *Aggregator) Watch(ctx context.Context, started func() error, f func(*weftv1.WatchResponse) error) error {
	h := a.hub
	w := &watcher{events: make(chan *weftv1.WatchResponse, watcherBuffer)}
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return ErrStopped
	}
	h.watchers[w] = struct{}{}
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.watchers, w)
	}()
	if err := started(); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, ok := <-w.events:
			if !ok {
				return w.err
			}
			if err := f(e); err != nil {
				return err
			}
		}
	}
}
