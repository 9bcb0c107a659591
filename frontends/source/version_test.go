package source

import (
	"math"
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/weft-proxy/weft/frontends/testing/apitest"
)

// followVersions returns a source's versions in order. The first list ends only after the first one.
func followVersions(t *testing.T, api *apitest.Server, k *Kube) (*recorder, <-chan *version.Version) {
	t.Helper()
	versions := make(chan *version.Version, 100)
	r := newRecorder()
	s := r.subscription()
	s.Version = func(v *version.Version) { versions <- v }
	synced := s.Synced
	s.Synced = func() {
		if len(api.Requests("version")) == 0 {
			t.Error("synced without a request for the version")
		}
		synced()
	}
	must(t, k.Subscribe(s))
	run(t, k)
	return r, versions
}

func awaitVersion(t *testing.T, versions <-chan *version.Version, want string) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		select {
		case v := <-versions:
			if v.String() == want {
				return
			}
		case <-deadline:
			t.Fatalf("no version %s", want)
		}
	}
}

// TestVersion asks a server for its version, and again after new connections, but not without one.
func TestVersion(t *testing.T) {
	t.Parallel()
	api := apitest.New(t)
	fill(api, 3)
	api.SetRelease("1.39+")
	r, versions := followVersions(t, api, kubeOf(t, api, KubeConfig{}))
	awaitVersion(t, versions, "1.39")
	r.until(t, "the end of the lists", func() bool { return r.synced == 1 })

	api.Set(kubeService("late", "10.96.2.1"))
	r.until(t, "a change", func() bool { return r.objects["Service default/late"] != "" })
	connections := 0
	for _, kind := range []string{"services", "endpointslices", "nodes", "servicecidrs"} {
		connections += len(api.Requests(kind))
	}
	if n := len(api.Requests("version")); n > connections {
		t.Errorf("%d requests for the version over at most %d connections", n, connections)
	}

	api.SetRelease("1.40")
	api.Cut()
	awaitVersion(t, versions, "1.40")

	api.Stop()
	api.SetRelease("1.41")
	must(t, api.Start())
	awaitVersion(t, versions, "1.41")
}

// TestVersionIsUnknown follows a server that does not tell its version at first, or never.
func TestVersionIsUnknown(t *testing.T) {
	t.Parallel()
	for status, failures := range map[int]int{http.StatusForbidden: math.MaxInt, http.StatusNotFound: 20} {
		api := apitest.New(t)
		fill(api, 3)
		api.Fault(func(q apitest.Request) apitest.Fault {
			if q.Resource == "version" && q.N <= failures {
				return apitest.Fault{Status: status}
			}
			return apitest.Fault{}
		})
		k := kubeOf(t, api, KubeConfig{})
		k.retryAbsent = time.Millisecond
		r, versions := followVersions(t, api, k)
		r.until(t, "the end of the lists", func() bool { return r.synced == 1 })
		if status == http.StatusNotFound {
			awaitVersion(t, versions, "1.37")
		}
	}
}
