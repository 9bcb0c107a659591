package policy

import (
	"context"
	"sync"
	"time"

	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/policy/nri"
)

const (
	// runtimeTimeout bounds how long the first update waits for the container runtime. The
	// rules of the process before are in force meanwhile.
	runtimeTimeout = 5 * time.Second
	// sandboxEvents is the kind of the events of the container runtime.
	sandboxEvents = "sandboxes"
)

// containerRuntime follows the container runtime of this node, which knows pods earlier than
// the API does.
type containerRuntime struct {
	frontend *Frontend
	plugin   *nri.Plugin
	// complete is closed once everything that exists is known, or the runtime does not
	// report its pods in time.
	complete chan struct{}
}

// newContainerRuntime returns nil if the frontend has no container runtime.
func newContainerRuntime(f *Frontend) (*containerRuntime, error) {
	if f.cfg.RuntimeSocket == "" {
		return nil, nil
	}
	r := &containerRuntime{frontend: f, complete: make(chan struct{})}
	var err error
	r.plugin, err = nri.New(nri.Config{Socket: f.cfg.RuntimeSocket, Deliver: r.deliver, Logger: f.cfg.Logger})
	return r, err
}

// ready returns the channel to wait for before the first update.
func (r *containerRuntime) ready(synced chan struct{}) <-chan struct{} {
	if r == nil {
		return synced
	}
	return r.complete
}

// run follows the container runtime until ctx ends.
func (r *containerRuntime) run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { r.plugin.Run(ctx) })
	r.awaitPods(ctx)
	wg.Wait()
}

// awaitPods closes complete. A first update without the pods that only the runtime knows
// would end their isolation after a restart.
func (r *containerRuntime) awaitPods(ctx context.Context) {
	f := r.frontend
	select {
	case <-ctx.Done():
		return
	case <-f.synced:
	}
	t := time.NewTimer(runtimeTimeout)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return
	case <-r.plugin.Synced():
	case <-t.C:
		f.cfg.Logger.Warn("the container runtime does not report its pods: publishing without those that the API does not know",
			"socket", f.cfg.RuntimeSocket, "wait", runtimeTimeout)
	}
	f.state.backlog.Restart()
	close(r.complete)
}

// deliver applies a change of sandboxes to the model. The channel is closed once a commit has
// it.
func (r *containerRuntime) deliver(change func(*model.Model)) <-chan struct{} {
	f := r.frontend
	f.metrics.events.WithLabelValues("sandbox").Inc()
	committed, dirty := f.state.change(sandboxEvents, change)
	if dirty {
		f.publisher.Wake()
	}
	return committed
}
