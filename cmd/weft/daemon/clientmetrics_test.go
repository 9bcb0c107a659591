package daemon

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weft-proxy/weft/aggregator/server"
	"github.com/weft-proxy/weft/conntrack"
)

// onlyHost leaves out the requests of other tests to other servers.
type onlyHost struct {
	prometheus.Gatherer
	host string
}

// Gather implements prometheus.Gatherer.
func (o onlyHost) Gather() ([]*dto.MetricFamily, error) {
	all, err := o.Gatherer.Gather()
	for _, f := range all {
		f.Metric = slices.DeleteFunc(f.Metric, func(m *dto.Metric) bool {
			return !slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetValue() == o.host })
		})
	}
	return all, err
}

// TestClientMetrics has a real client of the API ask a server.
//
// Behaviour: 164.
func TestClientMetrics(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	c, err := kubernetes.NewForConfig(&rest.Config{Host: srv.URL})
	must(t, err)
	if _, err := c.CoreV1().Nodes().Get(t.Context(), "node-1", metav1.GetOptions{}); err == nil {
		t.Fatal("a server without anything has a node")
	}
	// What the handler of /metrics serves.
	g := prometheus.Gatherers{newRegistry("test"), prometheus.GathererFunc(clientMetrics)}
	if err := testutil.GatherAndCompare(onlyHost{g, strings.TrimPrefix(srv.URL, "http://")}, strings.NewReader(`
		# HELP rest_client_requests_total [ALPHA] Number of HTTP requests, partitioned by status code, method, and host.
		# TYPE rest_client_requests_total counter
		rest_client_requests_total{code="404",host="`+strings.TrimPrefix(srv.URL, "http://")+`",method="GET"} 1
	`), "rest_client_requests_total"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{
		"rest_client_request_duration_seconds", "rest_client_rate_limiter_duration_seconds", "rest_client_request_size_bytes",
	} {
		if n, err := testutil.GatherAndCount(g, name); n == 0 || err != nil {
			t.Errorf("%s has %d series (%v)", name, n, err)
		}
	}
}

// someFlows removes as many flows as there are entries, and then fails.
type someFlows struct{}

func (someFlows) Flush(_ context.Context, stale []conntrack.Stale) (int, error) {
	return len(stale), nil
}

func (someFlows) Reconcile(_ context.Context, live []conntrack.Destination) (int, error) {
	return len(live), errors.New("interrupted")
}

// TestFlowMetrics counts what passes over the flows remove.
//
// Behaviour: 164.
func TestFlowMetrics(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := measureFlows(someFlows{}, reg)
	if n, err := m.Flush(t.Context(), make([]conntrack.Stale, 2)); n != 2 || err != nil {
		t.Errorf("flush gave %d, %v", n, err)
	}
	if n, err := m.Reconcile(t.Context(), make([]conntrack.Destination, 3)); n != 3 || err == nil {
		t.Errorf("reconcile gave %d, %v", n, err)
	}
	want := `
		# HELP kubeproxy_conntrack_reconciler_deleted_entries_total Cumulative conntrack flows deleted by conntrack reconciler
		# TYPE kubeproxy_conntrack_reconciler_deleted_entries_total counter
		kubeproxy_conntrack_reconciler_deleted_entries_total 5
	`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), metricFlowDeleted); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(reg, metricFlowSeconds); n != 1 || err != nil {
		t.Errorf("%s has %d series (%v)", metricFlowSeconds, n, err)
	}
}

// someTable deletes all entries but one, and then fails.
type someTable struct{ server.FlowTable }

func (someTable) Delete(_ context.Context, entries []conntrack.Entry) (int, error) {
	return len(entries) - 1, errors.New("interrupted")
}

// TestTableMetrics counts what is deleted for publishers, before an error too.
func TestTableMetrics(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := measureTable(someTable{}, reg)
	for range 2 {
		if n, err := m.Delete(t.Context(), make([]conntrack.Entry, 4)); n != 3 || err == nil {
			t.Errorf("deletion gave %d, %v", n, err)
		}
	}
	if n := testutil.ToFloat64(m.deleted); n != 6 {
		t.Errorf("%s is %v, want 6", metricPublisherFlows, n)
	}
}
