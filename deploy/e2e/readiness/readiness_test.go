package readiness

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// TestReadiness fails pods with an API server, and without one.
//
// Behaviour: 171, 174.
func TestReadiness(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	w := newWorld(t, ctx)
	w.compare(t, ctx)
	w.outage(t, ctx)
	must(t, w.Cluster.StartAPIServer(ctx))
}

// compare counts the failures of a pod that reach the health check node port before the EndpointSlice reaches a
// client of the API server.
func (w *world) compare(t *testing.T, ctx context.Context) {
	slices, err := w.Cluster.Client().DiscoveryV1().EndpointSlices(namespace).Watch(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
	must(t, err)
	defer slices.Stop()
	sooner := 0
	var weftTook, apiTook time.Duration
	for range *changesFlag {
		must(t, awaitSlice(slices, w.a.name, true))
		must(t, w.await(ctx, deadline, http.StatusOK, 2))
		at := make(chan time.Time, 1)
		failed := make(chan error, 1)
		w.a.set(true)
		go func() {
			err := w.poll(ctx, http.StatusOK, 1)
			at <- time.Now()
			failed <- err
		}()
		must(t, awaitSlice(slices, w.a.name, false))
		api := time.Now()
		weft, began := <-at, w.a.firstFailure()
		must(t, <-failed)
		if weft.Before(api) {
			sooner++
		}
		weftTook, apiTook = weftTook+weft.Sub(began), apiTook+api.Sub(began)
		w.a.set(false)
	}
	n := time.Duration(*changesFlag)
	t.Logf("of %d failures %d reached the health check node port before the EndpointSlice; on average %s after the failed probe, the EndpointSlice %s",
		*changesFlag, sooner, (weftTook / n).Round(100*time.Microsecond), (apiTook / n).Round(100*time.Microsecond))
	if 2*sooner <= *changesFlag {
		t.Errorf("%d of %d: want most", sooner, *changesFlag)
	}
	must(t, w.await(ctx, deadline, http.StatusOK, 2))
}

// awaitSlice reads events until one has the pod in a state of readiness. The first events have the present state.
func awaitSlice(slices watch.Interface, pod string, ready bool) error {
	limit := time.After(deadline)
	for {
		select {
		case e, ok := <-slices.ResultChan():
			if !ok {
				return fmt.Errorf("the watch of EndpointSlices ended")
			}
			slice, _ := e.Object.(*discoveryv1.EndpointSlice)
			for i := range slice.Endpoints {
				if o := &slice.Endpoints[i]; o.TargetRef.Name == pod && *o.Conditions.Ready == ready {
					return nil
				}
			}
		case <-limit:
			return fmt.Errorf("no EndpointSlice has %s with ready %t within %s", pod, ready, deadline)
		}
	}
}

// outage fails both pods and restores one, without an API server.
func (w *world) outage(t *testing.T, ctx context.Context) {
	must(t, w.Cluster.KillAPIServer())
	w.a.set(true)
	var last time.Time
	alone := 0
	must(t, lab.Within(ctx, deadline, func() error {
		for alone < 100 {
			pod, err := w.pick(ctx)
			if err != nil {
				return err
			}
			alone++
			if pod == w.a.name {
				last, alone = time.Now(), 0
			}
			if alone > 50 && w.a.firstFailure().IsZero() {
				alone = 0
			}
		}
		return nil
	}))
	t.Logf("without an API server: the last new connection to a pod came %s after its first failed probe", max(0, last.Sub(w.a.firstFailure())).Round(100*time.Microsecond))
	must(t, w.await(ctx, deadline, http.StatusOK, 1))
	w.b.set(true)
	must(t, w.poll(ctx, http.StatusServiceUnavailable, 0))
	t.Logf("without an API server: the health check node port said 503 %s after the first failed probe of the last pod", time.Since(w.b.firstFailure()).Round(100*time.Microsecond))
	must(t, lab.Within(ctx, deadline, func() error {
		pod, err := w.pick(ctx)
		if err == nil {
			return fmt.Errorf("%s answers, and is not ready", pod)
		}
		return nil
	}))
	w.b.set(false)
	must(t, w.await(ctx, deadline, http.StatusOK, 1))
	if pod, err := w.pick(ctx); err != nil || pod != w.b.name {
		t.Errorf("%q answers (%v), want %s", pod, err, w.b.name)
	}
}
