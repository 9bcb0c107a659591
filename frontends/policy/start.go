package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// startInterval is how often a start that waits looks again.
const startInterval = 200 * time.Millisecond

// start is what the first update waits for.
type start struct {
	// synced is closed when the source has delivered everything that exists.
	synced chan struct{}
	// ready is closed when the first update may be sent.
	ready chan struct{}

	mu sync.Mutex
	// unread are manifests that have not been valid since the start.
	unread []string
}

// setUnread receives the manifests that have not been valid since the start.
func (s *start) setUnread(files []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unread = slices.Clone(files)
}

// complete returns an error that names the manifests that have not been valid since the
// start, nil if there are none.
func (s *start) complete() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unread) == 0 {
		return nil
	}
	return fmt.Errorf("network policies: manifests are not valid, so what is in them is not known: %s", strings.Join(s.unread, ", "))
}

// awaitStart closes ready once everything that exists is known.
func (f *Frontend) awaitStart(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-f.start.synced:
	}
	f.awaitManifests(ctx)
	// The first update would end what the process before enforced by interface.
	select {
	case <-ctx.Done():
		return
	case <-f.links.Synced():
	}
	f.runtime.awaitPods(ctx)
	if ctx.Err() != nil {
		return
	}
	f.state.backlog.Restart()
	close(f.start.ready)
}

// awaitManifests waits until the manifests of the start are valid. An update without the
// policies in one that is not would end what they isolate: the rules of the process before
// stay in force meanwhile. If there are none, the policies that are known are better than
// nothing.
func (f *Frontend) awaitManifests(ctx context.Context) {
	err := f.start.complete()
	if err == nil {
		return
	}
	f.cfg.Logger.Error("not ready: the rules of the process before stay in force until all manifests are valid", "error", err)
	tick := time.NewTicker(startInterval)
	defer tick.Stop()
	for f.start.complete() != nil {
		if status := f.publisher.Status(); status.Connected && !status.Restored {
			f.cfg.Logger.Error("no rules of a process before are in force: enforcing only the policies of valid manifests", "error", err)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
