package events

import (
	"context"
	"errors"
	"testing"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// TestSlowWatcherIsDropped has a watcher that does not return while events come.
func commitEvent() *weftv1.WatchResponse {
	return &weftv1.WatchResponse{Event: &weftv1.WatchResponse_Commit{Commit: &weftv1.Commit{}}}
}

func TestSlowWatcherIsDropped(t *testing.T) {
	h, errStopped := New(time.Now), errors.New("stopped")
	started, stuck, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
	slow, quick := make(chan error, 1), make(chan error, 1)
	var seen int
	go func() {
		first := true
		slow <- h.Watch(context.Background(), func() error { started <- struct{}{}; return nil }, func(*weftv1.WatchResponse) error {
			if first {
				first = false
				close(stuck)
				<-release
			}
			return nil
		})
	}()
	<-started
	h.Publish(commitEvent())
	<-stuck
	ctx, cancel := context.WithCancel(context.Background())
	took := make(chan struct{})
	go func() {
		quick <- h.Watch(ctx, func() error { started <- struct{}{}; return nil }, func(*weftv1.WatchResponse) error {
			seen++
			took <- struct{}{}
			return nil
		})
	}()
	<-started
	for range watcherBuffer + 10 {
		h.Publish(commitEvent())
		<-took
	}
	close(release)
	if err := <-slow; !errors.Is(err, ErrSlowWatcher) {
		t.Errorf("slow watcher: %v", err)
	}
	cancel()
	if err := <-quick; !errors.Is(err, context.Canceled) || seen != watcherBuffer+10 {
		t.Errorf("quick watcher saw %d: %v", seen, err)
	}
	h.Close(errStopped)
	if err := h.Watch(context.Background(), func() error { return nil }, nil); !errors.Is(err, errStopped) {
		t.Errorf("watch after the end: %v", err)
	}
}
