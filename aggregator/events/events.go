package events

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// ErrSlowWatcher means that a slow watcher was dropped.
var ErrSlowWatcher = errors.New("watcher too slow: events were lost")

// watcherBuffer is the lag in events after which a watcher is dropped.
const watcherBuffer = 256

// Hub distributes events to watchers without waiting for them.
type Hub struct {
	now func() time.Time

	mu       sync.Mutex
	watchers map[*watcher]struct{}
	// closed is the error of Close.
	closed error
}

type watcher struct {
	events chan *weftv1.WatchResponse
	// err is why events was closed.
	err error
}

// New returns a Hub, which stamps events with the time.
func New(now func() time.Time) *Hub {
	return &Hub{now: now, watchers: make(map[*watcher]struct{})}
}

// Watched reports whether there are watchers.
func (h *Hub) Watched() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.watchers) > 0
}

// Publish hands an event to all watchers. The event belongs to the Hub.
func (h *Hub) Publish(e *weftv1.WatchResponse) {
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
func (h *Hub) drop(w *watcher, err error) {
	w.err = err
	delete(h.watchers, w)
	close(w.events)
}

// Close ends all present and future watchers with err.
func (h *Hub) Close(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = err
	for w := range h.watchers {
		h.drop(w, err)
	}
}

// Watch subscribes to events, calls started, and then calls f with every event until ctx ends or f fails.
// It returns that error, or the error of started. started must not be nil. f must not change the event.
//
// Possible errors: ErrSlowWatcher, Close's, started's, f's, ctx's.
func (h *Hub) Watch(ctx context.Context, started func() error, f func(*weftv1.WatchResponse) error) error {
	w := &watcher{events: make(chan *weftv1.WatchResponse, watcherBuffer)}
	h.mu.Lock()
	if h.closed != nil {
		defer h.mu.Unlock()
		return h.closed
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
