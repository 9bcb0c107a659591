package source

import (
	"log/slog"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/frontends/testing/apitest"
)

// TestReturnOfANewServer stops an API server, and starts it again without the history that the watches know.
// When one of them has found that out, the others list at once.
func TestReturnOfANewServer(t *testing.T) {
	t.Parallel()
	api := apitest.New(t)
	fill(api, 3)
	r := follow(t, kubeOf(t, api, KubeConfig{}))
	r.until(t, "the end of the lists", func() bool { return r.synced == 1 })
	api.Stop()
	api.Set(kubeNode("n1"), kubeService("late", "10.96.2.1"), kubeSlice("late-1", "10.1.2.1"))
	api.Compact()
	api.Forget()
	must(t, api.Start())
	kinds := []string{"nodes", "services", "endpointslices"}
	// asked returns how many watches tried to continue, and how many have listed.
	asked := func() (continued, listed int) {
		for _, kind := range kinds {
			verbs := make(map[bool]int)
			for _, q := range api.Requests(kind) {
				verbs[q.Verb == "watch"]++
			}
			continued, listed = continued+min(verbs[true], 1), listed+min(verbs[false], 1)
		}
		return continued, listed
	}
	continued, listed := 0, 0
	aggregatortest.Eventually(t, "all watches list again", func() bool {
		continued, listed = asked()
		return listed == len(kinds)
	})
	r.until(t, "the new objects", func() bool {
		return r.objects["Service default/late"] != "" && r.objects["EndpointSlice default/late-1"] != ""
	})
	if continued == len(kinds) {
		t.Errorf("all %d watches tried to continue", continued)
	}
}

// TestReturn tells which watches cannot continue after the return of the API server: those that were
// listed before, once one of them has ended that did continue. The time in which they come back is that of
// the outage, from retryBack to maxSpread.
func TestReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReach("", slog.New(slog.DiscardHandler))
		outage := func(d time.Duration) {
			r.note(nil, syscall.ECONNREFUSED)
			<-time.After(d)
			r.note(&http.Response{StatusCode: http.StatusOK}, nil)
			<-time.After(time.Millisecond)
		}
		old := time.Now()
		<-time.After(time.Minute)
		if r.ended(old, time.Now()) || r.lost(old) {
			t.Error("a watch that ends while the server answers counts as one after its return")
		}
		for _, test := range []struct{ away, want time.Duration }{{time.Second, retryBack}, {20 * time.Second, 20 * time.Second}, {time.Hour, maxSpread}} {
			outage(test.away)
			if got := r.spreading(); got != test.want {
				t.Errorf("away for %v: the watches come back within %v, want %v", test.away, got, test.want)
			}
			if r.ended(old, old) || r.lost(old) {
				t.Errorf("away for %v: watches are lost although none has tried", test.away)
			}
			if !r.ended(old, time.Now()) || !r.lost(old) || r.lost(time.Now()) {
				t.Errorf("away for %v: want the watches lost that were listed before, and no other", test.away)
			}
		}
		r.note(nil, syscall.ECONNREFUSED)
		if r.lost(old) || r.ended(old, time.Now()) {
			t.Error("watches are lost while the server does not answer")
		}
		outage(time.Second)
		r.ended(old, time.Now())
		<-time.After(2 * maxSpread)
		if r.lost(old) {
			t.Error("watches are lost for longer than they take to come back")
		}
	})
}
