package daemon

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// TestMain installs the hooks of client-go, which are variables of the process, before a test starts a client.
func TestMain(m *testing.M) {
	newRegistry("test")
	os.Exit(m.Run())
}

// TestProcessMetrics looks for what every Go program and every component of
// Kubernetes has.
//
// Behaviour: 164.
func TestProcessMetrics(t *testing.T) {
	families, err := newRegistry("v1").Gather()
	must(t, err)
	have := make(map[string]bool)
	for _, f := range families {
		have[f.GetName()] = true
	}
	for _, want := range []string{"go_goroutines", "go_memstats_heap_alloc_bytes", "process_cpu_seconds_total", "process_resident_memory_bytes", "process_start_time_seconds"} {
		if !have[want] {
			t.Errorf("there is no %s", want)
		}
	}
}

// fakeProxy is the health of a Service frontend that is always healthy.
type fakeProxy struct{ required []func() error }

func (*fakeProxy) Healthz(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }
func (*fakeProxy) Livez(w http.ResponseWriter, _ *http.Request)   { w.WriteHeader(http.StatusOK) }
func (p *fakeProxy) Require(check func() error)                   { p.required = append(p.required, check) }

// TestHealthOfPolicies has the network policies in /healthz, beside the Services and alone,
// and not in /livez.
func TestHealthOfPolicies(t *testing.T) {
	var published error
	for _, proxy := range []proxyHealth{nil, &fakeProxy{}} {
		s := &httpServers{healthy: func() error { return nil }, published: func() error { return published }, proxy: proxy}
		handler := s.healthHandler()
		for _, published = range []error{nil, errors.New("network policies: not published")} {
			for path, want := range map[string]bool{"/healthz": published == nil, "/livez": true} {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
				if (w.Code == http.StatusOK) != want || !want && !strings.Contains(w.Body.String(), "network policies") {
					t.Errorf("%s with the error %v is %d %s", path, published, w.Code, w.Body)
				}
			}
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
