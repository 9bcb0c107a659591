package monitoring

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/util/teststorage"
)

const metricsAddress = "127.0.0.1:10249"

const inNamespace = "WEFT_MONITORING_NAMESPACE"

// TestQueriesOnWeft runs every query on the metrics of a real weft with Services, policies, and a
// rejected publisher. A metric that weft lacks is an error.
func TestQueriesOnWeft(t *testing.T) {
	if os.Getenv(inNamespace) != "" {
		queriesOnWeft(t)
		return
	}
	needRoot(t)
	// The namespace has weft's rules and ports.
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestQueriesOnWeft$", "-test.v")
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	ok(t, err)
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("this test needs root")
	}
	t.Skip("this test needs root")
}

func run(t *testing.T, dir, program string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func must(t *testing.T, dir, program string, args ...string) {
	t.Helper()
	if out, err := run(t, dir, program, args...); err != nil {
		t.Fatalf("%s %v: %v\n%s", program, args, err, out)
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The change of the slice has a time, as in the API.
func slice(addresses string) string {
	return fmt.Sprintf(`apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: timed
  namespace: default
  labels: {kubernetes.io/service-name: timed}
  annotations: {endpoints.kubernetes.io/last-change-trigger-time: %q}
addressType: IPv4
ports: [{port: 8080}]
endpoints: [{addresses: [%s]}]
`, time.Now().UTC().Format(time.RFC3339), addresses)
}

// startWeft runs in dir, with Services and policies.
func startWeft(t *testing.T, dir string) (weft, socket string) {
	t.Helper()
	weft, socket = filepath.Join(dir, "weft"), filepath.Join(dir, "run", "weft.sock")
	must(t, "../..", "go", "build", "-o", weft, "./cmd/weft")
	must(t, "", "ip", "link", "set", "lo", "up")
	// Connections to Services leave, and their bytes are counted.
	must(t, "", "ip", "route", "add", "10.0.0.0/8", "dev", "lo")
	put(t, "/proc/sys/net/netfilter", "nf_conntrack_acct", "1")
	manifests := filepath.Join(dir, "manifests")
	must(t, "", "cp", "-r", "../examples/manifests", manifests)
	must(t, "", "cp", "../examples/policies/shop.yaml", manifests)
	put(t, manifests, "service.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: timed, namespace: default}\nspec: {clusterIP: 10.96.0.77, clusterIPs: [10.96.0.77], ports: [{port: 80, targetPort: 8080}]}\n")
	put(t, manifests, "slice.yaml", slice("10.244.1.20"))
	put(t, dir, "weft.yaml", configuration)
	s := &service{log: filepath.Join(dir, "log"), argv: func() []string {
		return []string{
			weft, "run", "--network-policy", "--service-counters=endpoint", "--service-active-connections", "--manifests", manifests,
			"--hostname-override", "node-a", "--cluster-cidr", clusterCIDR, "--socket", socket, "--state-dir", filepath.Join(dir, "state"),
			"--config", filepath.Join(dir, "weft.yaml"), "--metrics-bind-address", metricsAddress,
		}
	}}
	showLogs(t, s.log)
	s.start(t)
	return weft, socket
}

// showLogs prints logs if the test fails.
func showLogs(t *testing.T, names ...string) {
	t.Helper()
	t.Cleanup(func() {
		for _, name := range names {
			if text, err := os.ReadFile(name); err == nil && t.Failed() { //nolint:gosec // of the test
				t.Logf("%s:\n%s", name, text)
			}
		}
	})
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	ok(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
}

// server is Prometheus: its scraper, storage and engine.
type server struct {
	storage *teststorage.TestStorage
	engine  *promql.Engine
}

// newServer scrapes addresses of weft every 200 ms until the test ends.
func newServer(t *testing.T, addresses ...string) *server {
	t.Helper()
	s := &server{storage: teststorage.New(t), engine: promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)}
	t.Cleanup(func() { _ = s.storage.Close() })
	log := slog.New(slog.DiscardHandler)
	m, err := scrape.NewManager(&scrape.Options{}, log, nil, nil, s.storage, prometheus.NewRegistry())
	ok(t, err)
	cfg, err := config.Load("global: {scrape_interval: 200ms, scrape_timeout: 200ms}\nscrape_configs:\n- job_name: weft\n  static_configs: [{targets: ['"+strings.Join(addresses, "', '")+"']}]\n", log)
	if err == nil {
		err = m.ApplyConfig(cfg)
	}
	ok(t, err)
	targets, ended := make(chan map[string][]*targetgroup.Group), make(chan struct{})
	go func() { defer close(ended); _ = m.Run(targets) }()
	t.Cleanup(func() { m.Stop(); <-ended })
	group := &targetgroup.Group{Source: "test"}
	for _, a := range addresses {
		group.Targets = append(group.Targets, model.LabelSet{model.AddressLabel: model.LabelValue(a)})
	}
	targets <- map[string][]*targetgroup.Group{"weft": {group}}
	return s
}

func (s *server) query(ctx context.Context, expr string) (promql.Vector, error) {
	q, err := s.engine.NewInstantQuery(ctx, s.storage, nil, expr, time.Now())
	if err != nil {
		return nil, err
	}
	defer q.Close()
	return q.Exec(ctx).Vector()
}

// await waits until a query has a result.
func (s *server) await(t *testing.T, expr string) {
	t.Helper()
	await(t, "a result of "+expr, func() error {
		v, err := s.query(t.Context(), expr)
		if err == nil && len(v) == 0 {
			err = errors.New("none")
		}
		return err
	})
}

// metrics returns the names of the metrics that an expression reads.
func metrics(t *testing.T, expr string) (names []string) {
	t.Helper()
	e, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	ok(t, err)
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok {
			names = append(names, v.Name)
		}
		return nil
	})
	return names
}

func queriesOnWeft(t *testing.T) {
	dir := t.TempDir()
	weft, socket := startWeft(t, dir)
	s := newServer(t, metricsAddress)
	s.await(t, "weft_ready == 1")
	// A change of an endpoint, a rejected update, and calls of a user without rights.
	put(t, filepath.Join(dir, "manifests"), "slice.yaml", slice("10.244.1.21"))
	put(t, dir, "bad.nft", "table inet bad { chain c { ip sadr 192.0.2.1 drop; }; }\n")
	if out, err := run(t, "", weft, "apply", "-f", filepath.Join(dir, "bad.nft"), "--socket", socket); err == nil {
		t.Errorf("a wrong rule was accepted: %s", out)
	}
	must(t, "", "chmod", "755", dir, filepath.Dir(dir), filepath.Dir(socket))
	must(t, "", "chmod", "666", socket)
	if out, err := run(t, "", "setpriv", "--reuid=4001", "--regid=4001", "--clear-groups", weft, "get", "publishers", "--publisher", "other", "--socket", socket); err == nil {
		t.Errorf("a user without rights got %s", out)
	}
	s.await(t, "kubeproxy_network_programming_duration_seconds_count > 0")
	s.await(t, "count_over_time(weft_ready[1m]) > 10")
	// Without an answer, the connection is active for two minutes.
	dialer := net.Dialer{Timeout: 100 * time.Millisecond}
	if c, err := dialer.DialContext(t.Context(), "tcp", "10.96.0.77:80"); err == nil {
		t.Errorf("%v answers", c.RemoteAddr())
	}
	s.await(t, `weft_service_new_connections_total{service="timed"} == 1`)
	s.await(t, `weft_service_active_connection_bytes{service="timed", direction="original"} > 0`)
	queries := source(t).Queries(metricsAddress)
	names := make(map[string]bool)
	for where, expr := range queries {
		if _, err := s.query(t.Context(), expr); err != nil {
			t.Errorf("%s: %v", where, err)
		}
		for _, name := range metrics(t, expr) {
			names[name] = true
		}
	}
	recorded := func(name string) bool { return strings.HasPrefix(name, "weft:") && queries[name] != "" }
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if recorded(name) {
			continue
		}
		v, err := s.query(t.Context(), fmt.Sprintf("{%s=%q}", model.MetricNameLabel, name))
		if err != nil || len(v) == 0 {
			t.Errorf("no weft has the metric %s (%v)", name, err)
		}
	}
	t.Logf("%d queries on %d metrics", len(queries), len(names))
}
