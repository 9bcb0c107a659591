package policy

import (
	"context"
	"time"

	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/policy/nri"
)

const (
	// The earlier rules are in force during runtimeTimeout.
	runtimeTimeout = 5 * time.Second
	sandboxEvents  = "sandboxes"
)

type containerRuntime struct {
	frontend *Frontend
	plugin   *nri.Plugin
	metrics  *runtimeMetrics
}

func newContainerRuntime(f *Frontend) (*containerRuntime, error) {
	if f.cfg.RuntimeSocket == "" {
		return nil, nil
	}
	r := &containerRuntime{frontend: f}
	var err error
	r.metrics = newRuntimeMetrics(func() nri.Stats { return r.plugin.Stats() })
	r.plugin, err = nri.New(nri.Config{Socket: f.cfg.RuntimeSocket, Deliver: r.deliver, Isolated: r.metrics.isolated, Logger: f.cfg.Logger})
	return r, err
}

// awaitPods waits for the runtime's report. After a restart, a first update without it would end the
// isolation of pods unknown to the API.
func (r *containerRuntime) awaitPods(ctx context.Context) {
	if r == nil {
		return
	}
	t := time.NewTimer(runtimeTimeout)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-r.plugin.Synced():
	case <-t.C:
		r.frontend.cfg.Logger.Warn("the container runtime does not report its pods: publishing without those that the API does not know",
			"socket", r.frontend.cfg.RuntimeSocket, "wait", runtimeTimeout)
	}
}

func (r *containerRuntime) deliver(change func(*model.Model)) <-chan struct{} {
	f := r.frontend
	f.metrics.Events.WithLabelValues("sandbox").Inc()
	committed, dirty := f.state.change(sandboxEvents, change)
	if dirty {
		f.publisher.Wake()
	}
	return committed
}
