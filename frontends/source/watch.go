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
	// retryFirst and retryMost bound how long a watch waits between two attempts, plus as
	// much again at random. They are those of client-go: when an API server comes back,
	// all nodes of a cluster want their lists of it at once. After retryReset without a
	// wait the next one is the first again.
	retryFirst = 800 * time.Millisecond
	retryMost  = 30 * time.Second
	retryReset = 2 * time.Minute
	// retryBack is how long the other watches of the process wait at most once one was
	// answered again after a short outage; see reach.spreading.
	retryBack = time.Second
	// retryAbsent is the time between two attempts to list a resource that the API
	// server does not have, plus as much again at random. A Custom resource can appear at
	// any time.
	retryAbsent = time.Minute
	// maxAbsent is how many times retryAbsent that time becomes for an Optional resource,
	// which appears only with a new version of the server, or with the right to list it.
	maxAbsent = 60
)

// watchKey is what all users of a watch have in common.
type watchKey struct {
	resource       schema.GroupVersionResource
	labels, fields string
}

// resourceWatch is one watch of the API, and the store that it feeds.
type resourceWatch struct {
	key      watchKey
	presence Presence
	requests *cache.ListWatch
	reach    *reach
	store    *store
	log      *slog.Logger
	// failing is why the last request failed; nil while the watch works.
	failing atomic.Pointer[error]
	// listed is when the last list began, continued when the API server last accepted to continue
	// from a resource version. A list may outlive the reflector's call that began it.
	listed, continued moment
	// retryFirst and retryAbsent are the constants, and shorter in tests.
	retryFirst, retryAbsent time.Duration
}

// moment is a time that several goroutines use, zero at first.
type moment struct{ at atomic.Pointer[time.Time] }

// now makes it the current time.
func (m *moment) now() { m.at.Store(new(time.Now())) }

// time returns it.
func (m *moment) time() time.Time {
	if t := m.at.Load(); t != nil {
		return *t
	}
	return time.Time{}
}

// run follows the resource until ctx ends.
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
			// It was there.
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

// untilAbsent follows the resource until the API server does not have it, and returns the
// server's answer, or until ctx ends.
func (w *resourceWatch) untilAbsent(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w.reflect(ctx, untilAbsent(w.requests, cancel))
	return context.Cause(ctx)
}

// reflect runs a reflector of client-go until ctx ends. The reflector never resyncs:
// users have every object already. Between its attempts it waits as in its own Run; see
// reach.await for an API server that does not answer.
func (w *resourceWatch) reflect(ctx context.Context, requests *cache.ListWatch) {
	logger, waits := klog.FromContext(ctx), waitClock{ctx: ctx, reach: w.reach}
	// The store looks at the types of objects.
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

// noted returns requests that set failing. One that would continue a watch fails with the
// server's answer, and is not sent, if the server is known to have started anew: a list follows.
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

// backoff returns how long a reflector waits after each failure, at first for first.
func backoff(first time.Duration) *wait.Backoff {
	return &wait.Backoff{Duration: first, Cap: retryMost, Factor: 2, Jitter: 1, Steps: 40}
}

// untilAbsent returns requests that cancel the reflector at the first error that means that the API
// server does not have a resource, or does not let us list it: a reflector would retry at its own pace.
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

// waitClock is the real clock, except that the end of its context ends all waits, which
// the reflector of client-go v0.36 does not look at while it waits to request a streamed
// list again, and that a wait ends as reach.await says.
type waitClock struct {
	clock.RealClock
	ctx   context.Context //nolint:containedctx // its purpose
	reach *reach
}

// After implements clock.Clock.
func (c waitClock) After(d time.Duration) <-chan time.Time {
	ch := make(chan time.Time, 1)
	go func() {
		c.reach.await(c.ctx, d)
		ch <- c.Now()
	}()
	return ch
}
