package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/policy/objects"
	"github.com/weft-proxy/weft/frontends/policy/render"
)

const startInterval = 200 * time.Millisecond

// start is the condition of the first update.
type start struct {
	// All existing objects are delivered.
	synced chan struct{}
	ready  chan struct{} // the first update may be sent

	mu sync.Mutex
	// unread are manifests invalid since the start, or the missing resource of
	// ClusterNetworkPolicies.
	unread []string
}

func (s *start) setUnread(names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unread = slices.Clone(names)
}

type unknownThing int

const (
	unknownManifests unknownThing = iota + 1
	unknownClusterPolicies
	unknownNode
)

// unknown returns a required but unknown object, or 0 and nil.
func (f *Frontend) unknown() (unknownThing, error) {
	f.start.mu.Lock()
	unread := strings.Join(f.start.unread, ", ")
	f.start.mu.Unlock()
	switch {
	case strings.HasPrefix(unread, objects.ClusterPolicies+".policy.networking.k8s.io"):
		return unknownClusterPolicies, fmt.Errorf("network policies: the API server does not list %s", unread)
	case unread != "":
		return unknownManifests, fmt.Errorf("network policies: manifests are not valid, so what is in them is not known: %s", unread)
	case f.isSynced():
		if err := read(f.state, (*model.Model).Located); err != nil {
			return unknownNode, fmt.Errorf("network policies: %w", err)
		}
	}
	return 0, nil
}

// startDenies returns why --policy-start=deny does not isolate all unknown pods, or nil.
func (f *Frontend) startDenies() error {
	if f.cfg.Start != render.StartDeny || !f.isSynced() {
		return nil
	}
	if err := read(f.state, (*model.Model).Outside); err != nil {
		return fmt.Errorf("network policies: --policy-start=deny does not isolate new pods: %w", err)
	}
	return nil
}

func (f *Frontend) awaitStart(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-f.start.synced:
	}
	f.awaitKnown(ctx)
	// The first update would end the isolation by interface of the earlier process.
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

// awaitKnown waits for all isolating objects: an earlier update would end the isolation by the
// earlier process. Without earlier rules it does not wait.
func (f *Frontend) awaitKnown(ctx context.Context) {
	tick := time.NewTicker(startInterval)
	defer tick.Stop()
	for logged := false; ; {
		thing, err := f.unknown()
		status := f.publisher.Status()
		switch {
		case err == nil || status.Restored && (thing == unknownClusterPolicies && !f.content.Had().ClusterPolicies || thing == unknownNode && !f.content.Had().Pods):
			return
		case status.Connected && !status.Restored:
			f.cfg.Logger.Error("no rules of a process before are in force: enforcing only the policies that are known", "error", err)
			return
		case status.Connected && !logged:
			f.cfg.Logger.Error("not ready: the rules of the process before stay in force until everything is known", "error", err)
			logged = true
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
