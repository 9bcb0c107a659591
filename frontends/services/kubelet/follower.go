package kubelet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/weft-proxy/weft/frontends/services/model"
)

const (
	// DefaultSocket is the kubelet's.
	DefaultSocket = "/var/lib/kubelet/pods-api/pods-api.sock"
	// maxPods bounds the pods that are not ready, with those that are gone since the last list.
	maxPods = 4096
)

var (
	errSilent  = errors.New("the kubelet did not report its pods in time")
	errReview  = errors.New("endpoints are held out: list the pods again")
	errTooMany = fmt.Errorf("the kubelet has more than %d pods that are not ready", maxPods)
)

// Config describes a Follower.
type Config struct {
	// Required.
	Socket string
	// Deliver applies a change. Required.
	Deliver func(change func(*model.Model))
	// HeldOut returns the number of endpoints that the kubelet holds out. Required.
	HeldOut func() int
	// Nil discards.
	Logger *slog.Logger
}

// Follower follows the pods of a kubelet.
type Follower struct {
	cfg Config
	// The kubelet's word counts for grace after a disconnection, and for review while it holds out endpoints.
	// constant except in tests
	grace, review, minRetry, maxRetry time.Duration
	// not ready
	pods map[model.PodID]model.PodState
	// The model has the pods.
	known bool

	mu  sync.Mutex
	err error
}

var errStarting = errors.New("not connected yet")

// New returns a follower.
func New(cfg Config) *Follower {
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)).With("socket", cfg.Socket)
	return &Follower{
		cfg: cfg, grace: 5 * time.Second, review: 10 * time.Second, minRetry: 100 * time.Millisecond, maxRetry: 5 * time.Second,
		err: errStarting,
	}
}

// Err returns why the kubelet's word does not count, or nil.
func (f *Follower) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Run follows the kubelet until ctx ends, and reconnects when it restarts.
func (f *Follower) Run(ctx context.Context) {
	retry, until := f.minRetry, time.Now()
	for {
		wait := f.grace
		if f.known {
			wait = time.Until(until)
		}
		began := time.Now()
		synced, err := f.follow(ctx, wait)
		if ctx.Err() != nil {
			return
		}
		if synced {
			until = time.Now().Add(f.grace)
		}
		if synced && time.Since(began) >= f.grace {
			retry = f.minRetry
		}
		// A list is without pods that are gone.
		if synced && (errors.Is(err, errReview) || errors.Is(err, errTooMany)) {
			continue
		}
		f.report(err)
		pause := retry
		if f.known {
			pause = min(pause, time.Until(until))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		retry = min(2*retry, f.maxRetry)
		if f.known && !time.Now().Before(until) {
			f.known = false
			f.cfg.Logger.Warn("the kubelet does not come back: endpoints follow the API alone", "after", f.grace)
			f.cfg.Deliver(func(m *model.Model) { m.Pods().SetAll(nil) })
		}
	}
}

func (f *Follower) report(err error) {
	f.mu.Lock()
	was := f.err
	f.err = err
	f.mu.Unlock()
	switch {
	case err == nil && was != nil:
		f.cfg.Logger.Info("following the readiness of this node's pods at the kubelet")
	case err != nil && (was == nil || was.Error() != err.Error()):
		f.cfg.Logger.Warn("no connection to the kubelet's Pods API", "error", err.Error())
	}
}

func (f *Follower) replace(all map[model.PodID]model.PodState) {
	f.pods, f.known = all, true
	f.cfg.Deliver(func(m *model.Model) { m.Pods().SetAll(all) })
	f.report(nil)
}

func (f *Follower) set(pod model.PodID, s model.PodState) error {
	if f.pods[pod] == s {
		return nil
	}
	if err := put(f.pods, pod, s); err != nil {
		return err
	}
	f.cfg.Deliver(func(m *model.Model) { m.Pods().Set(pod, s) })
	return nil
}

func put(all map[model.PodID]model.PodState, pod model.PodID, s model.PodState) error {
	if all[pod] = s; s == model.PodReady {
		delete(all, pod)
	}
	if len(all) > maxPods {
		return errTooMany
	}
	return nil
}
