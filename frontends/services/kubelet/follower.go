package kubelet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/services/model"
)

const (
	// DefaultSocket is the kubelet's.
	DefaultSocket = "/var/lib/kubelet/pods-api/pods-api.sock"
	// maxPods bounds the known pods, with those that are gone.
	maxPods = 4096
)

var (
	errSilent  = errors.New("the kubelet did not report its pods in time")
	errReview  = errors.New("endpoints are held out: list the pods again")
	errTooMany = fmt.Errorf("the kubelet has more than %d pods", maxPods)
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
	pods                              map[types.UID]model.Pod
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
		pods: make(map[types.UID]model.Pod), err: errStarting,
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
		if errors.Is(err, errReview) {
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
			clear(f.pods)
			f.cfg.Logger.Warn("the kubelet does not come back: endpoints follow the API alone", "after", f.grace)
			f.cfg.Deliver(func(m *model.Model) { m.Pods().SetAll(nil) })
		}
	}
}

// report records the state of the connection.
func (f *Follower) report(err error) {
	f.mu.Lock()
	was := f.err
	f.err = err
	f.mu.Unlock()
	switch {
	case err == nil && was != nil:
		f.cfg.Logger.Info("following the readiness of this node's pods at the kubelet", "pods", len(f.pods))
	case err != nil && (was == nil || was.Error() != err.Error()):
		f.cfg.Logger.Warn("no connection to the kubelet's Pods API", "error", err.Error())
	}
}

// replace takes the kubelet's list. Pods that are gone do not come back by not being listed.
func (f *Follower) replace(all map[types.UID]model.Pod) {
	for uid, p := range f.pods {
		if _, ok := all[uid]; !ok && p.State == model.PodGone && len(all) < maxPods {
			all[uid] = p
		}
	}
	f.pods, f.known = all, true
	f.deliverAll()
	f.report(nil)
}

func (f *Follower) deliverAll() {
	all := slices.Collect(maps.Values(f.pods))
	f.cfg.Deliver(func(m *model.Model) { m.Pods().SetAll(all) })
}

// set delivers a pod if its state changed.
func (f *Follower) set(p model.Pod) error {
	was, ok := f.pods[p.UID]
	if !ok && len(f.pods) >= maxPods {
		maps.DeleteFunc(f.pods, func(_ types.UID, p model.Pod) bool { return p.State == model.PodGone })
		f.deliverAll()
	}
	if err := put(f.pods, p); err != nil {
		return err
	}
	if p = f.pods[p.UID]; p.State != was.State {
		f.cfg.Deliver(func(m *model.Model) { m.Pods().Set(p) })
	}
	return nil
}

func put(all map[types.UID]model.Pod, p model.Pod) error {
	was, ok := all[p.UID]
	switch {
	case !ok && len(all) >= maxPods:
		return errTooMany
	case ok && was.Key != p.Key:
		return fmt.Errorf("pod %s has the UID of pod %s", p.Key, was.Key)
	}
	// The event of a deletion lacks annotations.
	p.Static = p.Static || was.Static
	all[p.UID] = p
	return nil
}
