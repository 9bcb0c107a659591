package daemon

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/server"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/conditions"
	"github.com/weft-proxy/weft/cmd/weft/get"
	"github.com/weft-proxy/weft/cmd/weft/statuspage"
	"github.com/weft-proxy/weft/frontends/source"
)

var updateViews = flag.Bool("update", false, "write what the views show anew")

// seenMetrics has the metrics with each condition in turn, and seenAlerts the alerts that
// Prometheus raises on them. TestConditions of deploy/monitoring makes the latter of the former.
const (
	seenMetrics = "../../../deploy/monitoring/testdata/conditions.prom"
	seenAlerts  = "../../../deploy/monitoring/testdata/conditions.alerts"
)

// fakeFrontend is a frontend whose health a test sets.
type fakeFrontend struct {
	name                  string
	ready, degraded, node error
}

func (f *fakeFrontend) Run(context.Context) error { return nil }
func (f *fakeFrontend) Ready() error              { return f.ready }
func (f *fakeFrontend) Name() string              { return f.name }
func (f *fakeFrontend) Degraded() error           { return f.degraded }
func (f *fakeFrontend) Node() error               { return f.node }
func (f *fakeFrontend) Tables() []client.Table    { return []client.Table{{Name: "things"}} }

// fakeServices is a fakeFrontend that follows a kubelet, or not.
type fakeServices struct {
	fakeFrontend
	kubelet error
}

func (f *fakeServices) Kubelet() func() error { return func() error { return f.kubelet } }

// fakePolicies is a fakeFrontend that knows the interfaces of pods, or not.
type fakePolicies struct {
	fakeFrontend
	interfaces error
}

func (f *fakePolicies) Interfaces() error { return f.interfaces }

// fakeSource is a source whose API server a test takes away.
type fakeSource struct{ unreachable error }

func (*fakeSource) Subscribe(source.Subscription) error { return nil }
func (*fakeSource) Run(context.Context) error           { return nil }
func (s *fakeSource) Reachable() error                  { return s.unreachable }

// troubled is an aggregator with the troubles that a test sets.
type troubled struct {
	*aggregator.Aggregator
	healthy, stored, drift, converged, missing error
}

func (a *troubled) Healthy() error   { return errors.Join(a.healthy, a.Aggregator.Healthy()) }
func (a *troubled) Stored() error    { return errors.Join(a.stored, a.Aggregator.Stored()) }
func (a *troubled) Drift() error     { return errors.Join(a.drift, a.Aggregator.Drift()) }
func (a *troubled) Converged() error { return errors.Join(a.converged, a.Aggregator.Converged()) }
func (a *troubled) Missing() error   { return errors.Join(a.missing, a.Aggregator.Missing()) }

// scene is a process with all parts and all views.
type scene struct {
	*daemon
	t              *testing.T
	source         fakeSource
	services       fakeServices
	policies       fakePolicies
	agg            troubled
	rival, current error
	root           string
	running        *aggregatortest.Daemon
	page           *httptest.Server
	now            time.Time
	events         []string
	logged         bytes.Buffer
}

// netfilterDir has the counters of connection tracking.
const netfilterDir = "proc/sys/net/netfilter"

// newScene starts a process in which all is well.
func newScene(t *testing.T) *scene {
	s := &scene{t: t, root: t.TempDir(), now: time.Unix(1_800_000_000, 0)}
	must(t, os.MkdirAll(filepath.Join(s.root, netfilterDir), 0o700))
	s.services.name, s.policies.name = "services", "network-policies"
	s.daemon = &daemon{
		Flags: &Flags{verb: VerbRun}, version: "v1", log: slog.New(slog.DiscardHandler), registry: prometheus.NewRegistry(),
		cluster: &cluster{source: &s.source}, frontends: []frontend{&s.services, &s.policies},
		servers: &serverErrors{}, successor: &successor{}, clock: &wallClock{log: slog.New(slog.DiscardHandler), start: time.Now()},
	}
	s.connections(10)
	s.running = aggregatortest.Start(t, aggregatortest.Config{
		Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}},
		Limits: func(c *server.Config) {
			s.agg.Aggregator = c.Aggregator
			of := &aggregatorHealth{aggregator: &s.agg, rival: func() error { return s.rival }, current: func() error { return s.current }, root: s.root}
			s.watch(of)
		},
	})
	s.serve(s.daemon)
	// A page keeps what it has read for a second.
	s.page = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		statuspage.New(statuspage.Config{Socket: s.running.Socket, Version: "v1"}).ServeHTTP(w, r)
	}))
	t.Cleanup(s.page.Close)
	return s
}

// serve serves the tables of a process until the test ends, and waits until they are registered.
func (s *scene) serve(d *daemon) {
	ctx, cancel := context.WithCancel(context.Background())
	g, ctx := errgroup.WithContext(ctx)
	d.serveTables(ctx, g, s.running.Socket)
	s.t.Cleanup(func() { cancel(); _ = g.Wait() })
	conn := cli.Connection{Socket: s.running.Socket}
	aggregatortest.Eventually(s.t, "the conditions are registered", func() bool {
		all, err := get.ReadStatus(aggregatortest.Context(s.t), &conn)
		return err == nil && slices.ContainsFunc(all, func(p *conditions.Process) bool { return p.Process == string(d.verb) })
	})
}

// watch makes the monitor, as newMonitor does, with a clock and events of the test.
func (s *scene) watch(of *aggregatorHealth) {
	err := s.registry.Register(conntrackSize(s.root))
	if err == nil {
		s.monitor, err = conditions.NewMonitor(conditions.Config{
			Process: string(s.verb), Version: s.version, Conditions: s.conditions(of), Registerer: s.registry,
			Event:  func(kind, reason, _, message string) { s.events = append(s.events, kind+" "+reason+" "+message) },
			Logger: slog.New(slog.NewTextHandler(&s.logged, nil)), Now: func() time.Time { return s.now },
		})
	}
	must(s.t, err)
}

// connections sets how many of 100 connections the kernel tracks.
func (s *scene) connections(n int) {
	for name, v := range map[string]int{"nf_conntrack_count": n, "nf_conntrack_max": 100} {
		must(s.t, os.WriteFile(filepath.Join(s.root, netfilterDir, name), []byte(fmt.Sprintln(v)), 0o600))
	}
}

// apply publishes rules, and reports whether they are committed.
func (s *scene) apply(rules string) bool {
	_, err := s.running.Dial(s.t, "tester").Apply(aggregatortest.Context(s.t), &weftv1.Fragment{Name: "web", Nft: rules})
	return err == nil
}

// cause makes a condition true, and returns what ends it.
type cause struct {
	name  string
	state conditions.State
	begin func(s *scene) (end func())
}

// set returns a cause that sets an error.
func set(of func(*scene) *error, err error) func(*scene) func() {
	return func(s *scene) func() {
		*of(s) = err
		return func() { *of(s) = nil }
	}
}

// causes are all conditions in all states that they can have.
var causes = []cause{
	{conditions.Clock, conditions.Degraded, func(s *scene) func() {
		start := s.clock.start
		_ = s.clock.check()
		_ = s.clock.look(time.Now().Round(0).Add(time.Hour), time.Since(start))
		return func() { s.clock.by = 0 }
	}},
	{conditions.APIServer, conditions.Degraded, set(func(s *scene) *error { return &s.source.unreachable }, errors.New("https://10.0.0.1:6443: connection\nrefused"))},
	{conditions.Aggregator, conditions.NotReady, set(func(s *scene) *error { return &s.agg.healthy }, aggregator.ErrStopped)},
	{conditions.Socket, conditions.Degraded, set(func(s *scene) *error { return &s.rival }, errors.New("another weft (process 7) wanted the socket"))},
	{conditions.Configuration, conditions.Degraded, set(func(s *scene) *error { return &s.current }, errors.New("/etc/weft.yaml:3:1: unknown field"))},
	{conditions.StateDirectory, conditions.Degraded, set(func(s *scene) *error { return &s.agg.stored }, syscall.ENOSPC)},
	{conditions.Conntrack, conditions.Degraded, func(s *scene) func() {
		s.connections(97)
		return func() { s.connections(10) }
	}},
	{conditions.Tables, conditions.Degraded, set(func(s *scene) *error { return &s.agg.drift }, errors.New("not repaired yet: table ip weft"))},
	{conditions.Publishers, conditions.NotReady, set(func(s *scene) *error { return &s.agg.converged }, errors.New("publishers of before the restart have not come back yet: cni"))},
	{conditions.Publishers, conditions.Degraded, set(func(s *scene) *error { return &s.agg.missing }, errors.New("publishers have gone, for 20s, and their fragments stay as they are: cni"))},
	{conditions.Fragments, conditions.Degraded, func(s *scene) func() {
		const good = "table inet t { chain c { accept; }; }"
		if !s.apply(good) || s.apply("table inet t { chain c { ip sadr 192.0.2.1 drop; }; }") {
			s.t.Error("the rules are not committed, or wrong ones are")
		}
		return func() { s.apply(good) }
	}},
	{conditions.Node, conditions.Degraded, set(func(s *scene) *error { return &s.services.node }, errors.New("the node's podCIDR 10.244.1.0/24 is not in the cluster CIDR"))},
	{"services", conditions.NotReady, set(func(s *scene) *error { return &s.services.ready }, errors.New("services: not published yet"))},
	{"services", conditions.Degraded, set(func(s *scene) *error { return &s.services.degraded }, errors.New("services: IPv4 stays as it was: table ip weft is another program's"))},
	{conditions.Kubelet, conditions.Degraded, set(func(s *scene) *error { return &s.services.kubelet }, errors.New("watch pods at the kubelet: connection refused"))},
	{"network-policies", conditions.NotReady, set(func(s *scene) *error { return &s.policies.ready }, errors.New("network policies: not published yet"))},
	{"network-policies", conditions.Degraded, set(func(s *scene) *error { return &s.policies.degraded }, errors.New("network policies: 1 rejected by the aggregator, the first is NetworkPolicy a/b"))},
	{conditions.PodInterfaces, conditions.Degraded, set(func(s *scene) *error { return &s.policies.interfaces }, errors.New("network policies: the interfaces of pods are not known: a/b"))},
	{conditions.HTTP, conditions.Degraded, func(s *scene) func() {
		s.servers.set(flagMetrics, syscall.EADDRINUSE)
		return func() { s.servers.set(flagMetrics, nil) }
	}},
	{conditions.Takeover, conditions.Degraded, func(s *scene) func() {
		s.successor.set(errors.New("the rules of kube-proxy stay until it has ended"))
		return func() { s.successor.set(nil) }
	}},
}

// TestViews makes each condition true, and has each view show it, with its reason and remedy, and
// nothing else. Afterwards no view shows anything. With -v it prints the table of conditions by
// view.
func TestViews(t *testing.T) {
	s := newScene(t)
	var table, metrics strings.Builder
	alerts := readAlerts(t)
	fmt.Fprintf(&table, "\n%-27s", "condition")
	for _, v := range views {
		fmt.Fprintf(&table, " %-11s", v.name)
	}
	table.WriteString(" alert\n")
	differences := 0
	row := func(what string, want shown) {
		fmt.Fprintf(&table, "%-27s", what)
		for _, v := range views {
			got := v.await(s, want)
			cell := "ok"
			if len(want) > 0 {
				cell = "shown"
			}
			if _, ok := want[v.late]; ok {
				cell = "at its end"
			}
			if diff := want.differs(got, &v); diff != "" {
				differences++
				cell = "DIFFERS"
				t.Errorf("%s: %s: %s", what, v.name, diff)
			}
			fmt.Fprintf(&table, " %-11s", cell)
		}
		fmt.Fprintf(&table, " %s\n", alerts[what])
		fmt.Fprintf(&metrics, "# %s\n%s", what, s.scrape())
	}
	row("nothing", nil)
	for _, c := range causes {
		what := c.name + ", " + c.state.String()
		end := c.begin(s)
		status := s.monitor.Look().Wrong()
		if len(status) != 1 || status[0].Message == "" {
			t.Fatalf("%s: the conditions are %+v", what, status)
		}
		if alerts[what] == "" {
			t.Errorf("%s: no alert is raised: see TestConditions of deploy/monitoring", what)
		}
		row(what, shown{c.name: {c.state.String(), status[0].Message, conditions.KindOf(c.name).Remedy}})
		end()
		for _, v := range views {
			if got := v.await(s, nil); len(got) > 0 {
				t.Errorf("%s is over: %s shows %v", what, v.name, got)
			}
			if over := "Normal WeftRecovered " + c.name + ": "; v.late == c.name && !strings.HasPrefix(s.events[len(s.events)-1], over) {
				t.Errorf("%s is over: the last event is %s", what, s.events[len(s.events)-1])
			}
		}
	}
	if alerts["nothing"] != "" {
		t.Errorf("nothing is wrong, and %s is raised", alerts["nothing"])
	}
	t.Logf("%s%d differences", table.String(), differences)
	golden(t, seenMetrics, metrics.String())
}

// golden compares a file, or writes it.
func golden(t *testing.T, path, want string) {
	t.Helper()
	if *updateViews {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil { //nolint:gosec // of a repository
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != want {
		t.Errorf("%s is not what weft exports (%v): run go test -run TestViews . -args -update, and then make generate", path, err)
	}
}

// readAlerts returns the alerts of each condition.
func readAlerts(t *testing.T) map[string]string {
	t.Helper()
	b, err := os.ReadFile(seenAlerts)
	must(t, err)
	out := make(map[string]string)
	for line := range strings.Lines(string(b)) {
		what, names, _ := strings.Cut(strings.TrimSpace(line), ": ")
		out[what] = names
	}
	return out
}

// TestEveryCondition: a process has no condition that is not one of the kinds, each kind is a condition of some
// process, and TestViews makes each true.
func TestEveryCondition(t *testing.T) {
	all, caused, has := make(map[string]bool), make(map[string]bool), make(map[string]bool)
	for _, k := range conditions.Kinds {
		all[k.Name] = true
	}
	for _, c := range causes {
		caused[c.name] = true
	}
	for _, c := range newScene(t).monitor.Look().Conditions {
		has[c.Name] = true
	}
	if !maps.Equal(all, caused) || !maps.Equal(all, has) {
		t.Errorf("kinds %v,\nTestViews has %v,\na process %v", slices.Sorted(maps.Keys(all)), slices.Sorted(maps.Keys(caused)), slices.Sorted(maps.Keys(has)))
	}
}

// TestViewsOfOtherProcesses: what is wrong with a frontend that is a process of its own is in the views of the node.
func TestViewsOfOtherProcesses(t *testing.T) {
	s := newScene(t)
	degraded := fakeFrontend{name: "services", degraded: errors.New("services: IPv4 stays as it was")}
	other := &daemon{Flags: &Flags{verb: VerbServices}, version: "v2", log: slog.New(slog.DiscardHandler), registry: prometheus.NewRegistry(), frontends: []frontend{&degraded}}
	must(t, other.newMonitor(nil))
	s.serve(other)
	want := shown{"services": {"degraded", degraded.degraded.Error(), conditions.KindOf("services").Remedy}}
	for _, v := range views {
		if !v.node {
			continue
		}
		if diff := want.differs(v.await(s, want), &v); diff != "" {
			t.Errorf("%s: %s", v.name, diff)
		}
	}
}
