package source

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// Bounds of the wait between attempts, plus a random part up to the same length. After retryReset without
	// a wait it restarts at retryFirst.
	retryFirst = 800 * time.Millisecond
	retryMost  = 30 * time.Second
	retryReset = 2 * time.Minute
	// maximum wait of the other watches after a short outage
	retryBack = time.Second
	// wait for an absent resource, plus a random part up to the same length
	retryAbsent = time.Minute
	// An Optional resource's delay grows to maxAbsent times retryAbsent, because it appears only with a new
	// server version or permission.
	maxAbsent = 60
)

type watchKey struct {
	resource       schema.GroupVersionResource
	labels, fields string
}

type resourceWatch struct {
	key      watchKey
	presence Presence
	requests *cache.ListWatch
	reach    *reach
	store    *store
	log      *slog.Logger
	// nil while the watch works
	failing atomic.Pointer[error]
	// Atomic, because a list may outlive the reflector call that began it.
	listed, continued       moment
	retryFirst, retryAbsent time.Duration
}

// initially zero
type moment struct{ at atomic.Pointer[time.Time] }

func (m *moment) now() { m.at.Store(new(time.Now())) }

func (m *moment) time() time.Time {
	if t := m.at.Load(); t != nil {
		return *t
	}
	return time.Time{}
}

func (w *resourceWatch) run(ctx context.Context) {
	defer w.store.finishArrived()
	if w.presence == Required {
		w.reflect(ctx, w.requests)
		return
	}
	logged, delay := "", w.retryAbsent
	for {
		began := time.Now()
		err := w.untilAbsent(ctx)
		if ctx.Err() != nil {
			return
		}
		if err.Error() != logged {
			logged = err.Error()
			w.log.Warn("cannot list a resource: continuing without it", "resource", w.key.resource.Resource, "error", err)
		}
		if w.failing.Store(&err); !apierrors.IsForbidden(err) {
			w.store.resolve()
		}
		if w.presence == Custom && apierrors.IsNotFound(err) {
			w.store.deleteAll()
		}
		w.store.setReady()
		if time.Since(began) > delay {
			delay = w.retryAbsent
		}
		if !sleep(ctx, wait.Jitter(delay, 1)) {
			return
		}
		if w.presence == Optional {
			delay = min(2*delay, maxAbsent*w.retryAbsent)
		}
	}
}

// untilAbsent follows the resource until it is absent or forbidden. It returns that answer, or ctx's error.
func (w *resourceWatch) untilAbsent(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w.reflect(ctx, untilAbsent(w.requests, cancel))
	return context.Cause(ctx)
}

// reflect does not resync, because users have every object.
func (w *resourceWatch) reflect(ctx context.Context, requests *cache.ListWatch) {
	logger, waits := klog.FromContext(ctx), waitClock{ctx: ctx, reach: w.reach}
	// The store checks object types.
	r := cache.NewReflectorWithOptions(w.noted(requests), nil, w.store, cache.ReflectorOptions{
		Name: w.key.resource.Resource, TypeDescription: w.key.resource.Resource, Logger: &logger, Clock: waits, Backoff: backoff(w.retryFirst),
	})
	delay := backoff(w.retryFirst).DelayWithReset(waits, retryReset)
	for ctx.Err() == nil {
		if err := r.ListAndWatchWithContext(ctx); err != nil {
			cache.DefaultWatchErrorHandler(ctx, r, err)
		}
		pause := delay()
		if w.reach.ended(w.listed.time(), w.continued.time()) {
			pause = max(pause, rand.N(w.reach.spreading())) //nolint:gosec // not a secret
		}
		<-waits.After(pause)
	}
}

// noted returns requests that set failing. If the server has restarted, a continuing watch fails without a
// request, and a list follows.
func (w *resourceWatch) noted(requests *cache.ListWatch) *cache.ListWatch {
	note := func(err error) {
		switch {
		case err == nil:
			w.failing.Store(nil)
		case !errors.Is(err, context.Canceled):
			w.failing.Store(&err)
		}
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			w.listed.now()
			l, err := requests.ListWithContextFunc(ctx, o)
			note(err)
			return l, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			lists := o.SendInitialEvents != nil && *o.SendInitialEvents
			switch {
			case lists:
				w.listed.now()
			case w.reach.lost(w.listed.time()):
				return nil, apierrors.NewResourceExpired("the API server has started anew")
			}
			i, err := requests.WatchFuncWithContext(ctx, o)
			note(err)
			if err == nil && !lists {
				w.continued.now()
			}
			return i, err
		},
	}
}

func backoff(first time.Duration) *wait.Backoff {
	return &wait.Backoff{Duration: first, Cap: retryMost, Factor: 2, Jitter: 1, Steps: 40}
}

// untilAbsent returns requests that cancel the reflector if the resource is absent or forbidden.
func untilAbsent(requests *cache.ListWatch, cancel context.CancelCauseFunc) *cache.ListWatch {
	check := func(err error) error {
		if !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) && !apierrors.IsMethodNotSupported(err) {
			return err
		}
		cancel(err)
		return context.Canceled
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			l, err := requests.ListWithContextFunc(ctx, o)
			return l, check(err)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := requests.WatchFuncWithContext(ctx, o)
			return w, check(err)
		},
	}
}

// waitClock is the real clock, but its waits end with ctx and as in reach.await. client-go v0.36 ignores its
// context while it waits to request a streamed list again.
type waitClock struct {
	clock.RealClock
	ctx   context.Context //nolint:containedctx // its purpose
	reach *reach
}

func (c waitClock) After(d time.Duration) <-chan time.Time {
	ch := make(chan time.Time, 1)
	go func() {
		c.reach.await(c.ctx, d)
		ch <- c.Now()
	}()
	return ch
}
