package source

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/frontends/testing/apitest"
)

// faulty lets every request for a resource fail.
func faulty(resource string, fault apitest.Fault) func(apitest.Request) apitest.Fault {
	return func(q apitest.Request) apitest.Fault {
		if q.Resource == resource {
			return fault
		}
		return apitest.Fault{}
	}
}

// TestKubeWithoutServiceCIDRs follows an API server that is older than the kind,
// or does not let us list it: one warning, no wait, and the ranges once they
// come.
//
// Behaviour: 16.
func TestKubeWithoutServiceCIDRs(t *testing.T) {
	for _, code := range []int{http.StatusNotFound, http.StatusForbidden, http.StatusMethodNotAllowed} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			api := apitest.New(t)
			api.Set(kubeService("a", "10.96.0.1"), kubeCIDR("kubernetes", "10.96.0.0/16"))
			api.Fault(faulty("servicecidrs", apitest.Fault{Status: code}))
			log, logger := newLog()
			k := kubeOf(t, api, KubeConfig{Logger: logger})
			k.retryAbsent, k.grace = time.Millisecond, time.Hour
			r := follow(t, k)
			r.await(t, "Service default/a=10.96.0.1")
			aggregatortest.Eventually(t, "several attempts", func() bool { return len(api.Requests("servicecidrs")) >= 10 })
			log.mu.Lock()
			warnings, errors := strings.Count(log.b.String(), "level=WARN"), strings.Count(log.b.String(), "level=ERROR")
			if warnings != 1 || errors != 0 {
				t.Errorf("%d warnings, %d errors:\n%s", warnings, errors, log.b.String())
			}
			log.mu.Unlock()
			api.Fault(nil)
			r.await(t, "Service default/a=10.96.0.1", "ServiceCIDR kubernetes=10.96.0.0/16")
			// What was once known stays when the right to see it goes.
			api.Fault(faulty("servicecidrs", apitest.Fault{Status: code}))
			api.Cut()
			api.Set(kubeService("b", "10.96.0.2"))
			r.await(t, "Service default/a=10.96.0.1", "Service default/b=10.96.0.2", "ServiceCIDR kubernetes=10.96.0.0/16")
		})
	}
}

// TestKubeServiceCIDRsInTrouble waits for the ranges only for a while where the
// server has them but fails.
func TestKubeServiceCIDRsInTrouble(t *testing.T) {
	api := apitest.New(t)
	api.Set(kubeService("a", "10.96.0.1"))
	api.Fault(faulty("servicecidrs", apitest.Fault{Status: http.StatusInternalServerError}))
	log, logger := newLog()
	k := kubeOf(t, api, KubeConfig{Logger: logger})
	k.grace = 50 * time.Millisecond
	r := follow(t, k)
	log.await(t, "has not been listed yet")
	r.await(t, "Service default/a=10.96.0.1")
}
