package source

import (
	"net/http"
	"strings"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/weft-proxy/weft/frontends/testing/apitest"
)

// TestUnlistedCustomResource: a user is told which Custom resource the API server does not list,
// before it is synced, and again when it does. One that the API server does not have is not missing.
func TestUnlistedCustomResource(t *testing.T) {
	for code, missing := range map[int]bool{http.StatusForbidden: true, http.StatusInternalServerError: true, http.StatusNotFound: false} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			api := apitest.New(t)
			api.Set(kubeService("a", "10.96.0.1"), kubeCIDR("kubernetes", "10.96.0.0/16"))
			api.Fault(faulty("servicecidrs", apitest.Fault{Status: code}))
			k := kubeOf(t, api, KubeConfig{})
			k.retryAbsent, k.grace = time.Millisecond, 50*time.Millisecond
			r := newRecorder()
			s := r.subscription()
			cidr := s.Kinds[3].(Kind[*networkingv1.ServiceCIDR, string]) //nolint:forcetypeassert // as made
			cidr.Presence = Custom
			s.Kinds[3] = cidr
			unread := make(chan []string, 10)
			s.Unread = func(names []string) { unread <- names }
			synced := make(chan int, 1)
			s.Synced = func() { synced <- len(unread) }
			must(t, k.Subscribe(s))
			run(t, k)
			if told := <-synced; told > 0 != missing {
				t.Fatalf("told %d times before it is synced, want any %v", told, missing)
			}
			if !missing {
				return
			}
			if names := <-unread; len(names) != 1 || !strings.HasPrefix(names[0], "servicecidrs.networking.k8s.io (") {
				t.Errorf("not known: %q", names)
			}
			api.Fault(nil)
			if names := <-unread; len(names) != 0 {
				t.Errorf("not known after a list: %q", names)
			}
		})
	}
}
