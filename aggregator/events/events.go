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

const watcherBuffer = 256

// Hub distributes events without waiting for watchers.
type Hub struct {
	now func() time.Time

	mu       sync.Mutex
	watchers map[*watcher]struct{}
	closed   error
}

type watcher struct {
	events chan *weftv1.WatchResponse
	err    error
}

// New returns a Hub; now stamps events.
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

func (h *Hub) drop(w *watcher, err error) {
	w.err = err
	delete(h.watchers, w)
	close(w.events)
}

// Close ends present and future watchers with err.
func (h *Hub) Close(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = err
	for w := range h.watchers {
		h.drop(w, err)
	}
}

// Watch subscribes to events, calls started (never nil), and then calls f with every event until
// ctx ends or a call fails. f must not change the event.
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
