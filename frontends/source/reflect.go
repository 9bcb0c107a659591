package source

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// retryFirst and retryMost bound how long a reflector waits before it asks
	// again, each with as much again at random. An API server that is back is
	// found back within 3 s; client-go's own bounds make that a minute.
	retryFirst = 100 * time.Millisecond
	retryMost  = 1500 * time.Millisecond
	// retryAbsent is how often a kind is asked for that the API server does not
	// have, with as much again at random: it comes with the server's next version.
	retryAbsent = time.Minute
)

// track follows one kind until ctx ends.
func (k *Kube) track(ctx context.Context, kind *kind, s *store) {
	if !kind.optional {
		k.reflect(ctx, kind, s)
		return
	}
	said := ""
	for ctx.Err() == nil {
		sub, cancel := context.WithCancelCause(ctx)
		watched := *kind
		watched.asks = unless(kind.asks, isAbsent, cancel)
		k.reflect(sub, &watched, s)
		err := context.Cause(sub)
		cancel(nil)
		if ctx.Err() != nil {
			return
		}
		if err.Error() != said {
			said = err.Error()
			k.log.Warn("the API server does not give a resource: going on without it, and asking for it now and then",
				"resource", kind.resource, "error", err)
		}
		s.settle()
		pause := time.NewTimer(wait.Jitter(k.retryAbsent, 1))
		select {
		case <-ctx.Done():
			pause.Stop()
		case <-pause.C:
		}
	}
}

// reflect runs a reflector of client-go until ctx ends.
func (k *Kube) reflect(ctx context.Context, kind *kind, s *store) {
	logger := klog.FromContext(ctx)
	lw := cache.ToListWatcherWithWatchListSemantics(kind.asks, k.client)
	// The reflector never resyncs: what is delivered again is nothing new.
	r := cache.NewReflectorWithOptions(lw, kind.object, s, cache.ReflectorOptions{
		Name: kind.resource, Logger: &logger, Clock: endingClock{ctx: ctx},
		Backoff: backoff(),
	})
	r.RunWithContext(ctx)
}

// backoff is how long a reflector waits after each failure.
func backoff() *wait.Backoff {
	return &wait.Backoff{Duration: retryFirst, Cap: retryMost, Factor: 2, Jitter: 1, Steps: 10}
}

// isAbsent tells a kind that is not for us from a server that is in trouble.
func isAbsent(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err)
}

// unless ends a reflector at the first error that it shall not try again after.
func unless(asks *cache.ListWatch, hopeless func(error) bool, end context.CancelCauseFunc) *cache.ListWatch {
	check := func(err error) error {
		if err == nil || !hopeless(err) {
			return err
		}
		end(err)
		return context.Canceled
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			l, err := asks.ListWithContextFunc(ctx, o)
			return l, check(err)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := asks.WatchFuncWithContext(ctx, o)
			return w, check(err)
		},
	}
}

// endingClock is the real clock, but for waits that the end of its context cuts
// short: the reflector of client-go v0.36 sleeps through that while it waits to
// ask for a streamed list again.
type endingClock struct {
	clock.RealClock
	ctx context.Context //nolint:containedctx // that is what it is for
}

// After implements clock.Clock.
func (c endingClock) After(d time.Duration) <-chan time.Time {
	ch := make(chan time.Time, 1)
	sub, cancel := context.WithTimeout(c.ctx, d)
	context.AfterFunc(sub, func() {
		cancel()
		ch <- c.Now()
	})
	return ch
}
