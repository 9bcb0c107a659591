package aggregator_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/statedir"
	"github.com/weft-proxy/weft/aggregator/store"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/conntrack"
	"github.com/weft-proxy/weft/nft"
)

// inMemory runs a daemon on a kernel in memory.
func inMemory(t testing.TB) (*aggregatortest.Kernel, *aggregatortest.Daemon) {
	t.Helper()
	k := &aggregatortest.Kernel{}
	return k, aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
}

// same compares a value with what it should be.
func same[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// errorOf is for calls of which only the error is of interest.
func errorOf[T any](_ T, err error) error { return err }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func durable(f *weftv1.Fragment) *weftv1.Fragment {
	f.Lifetime = weftv1.Lifetime_LIFETIME_DURABLE
	return f
}

// logText is a log, or the output of a program, that tests read.
type logText struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logText) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// observed is a Config whose log and metrics the test reads.
func observed(cfg aggregator.Config) (aggregator.Config, *logText, *prometheus.Registry) {
	log, reg := &logText{}, prometheus.NewPedanticRegistry()
	cfg.Logger, cfg.Registerer = slog.New(slog.NewTextHandler(log, nil)), reg
	return cfg, log, reg
}

// values returns the values of a counter or gauge by the values of its labels, joined with "/".
func values(t *testing.T, reg prometheus.Gatherer, name string) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	must(t, err)
	all := map[string]float64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			all[strings.Join(labels, "/")] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return all
}

// metric returns the value of a counter or gauge that is there.
func metric(t *testing.T, reg prometheus.Gatherer, name, labels string) float64 {
	t.Helper()
	v, ok := values(t, reg, name)[labels]
	if !ok {
		t.Fatalf("metric %s %s not found", name, labels)
	}
	return v
}

func mustApply(t testing.TB, c *client.Client, fragments ...*weftv1.Fragment) {
	t.Helper()
	for _, f := range fragments {
		must(t, errorOf(c.Apply(aggregatortest.Context(t), f)))
	}
}

func applyAs(t *testing.T, d *aggregatortest.Daemon, publisher string, f *weftv1.Fragment) aggregator.Result {
	t.Helper()
	r, err := d.Aggregator.Apply(aggregatortest.Context(t), publisher, f)
	must(t, err)
	return r
}

// raw opens a bare Publish stream.
func raw(t *testing.T, d *aggregatortest.Daemon, publisher string) grpc.BidiStreamingClient[weftv1.PublishRequest, weftv1.PublishResponse] {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+d.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	ctx := metadata.AppendToOutgoingContext(aggregatortest.Context(t), "weft-publisher", publisher)
	stream, err := weftv1.NewPublisherClient(conn).Publish(ctx)
	must(t, err)
	return stream
}

// exchange sends a request and returns its acknowledgement.
func exchange(t *testing.T, s grpc.BidiStreamingClient[weftv1.PublishRequest, weftv1.PublishResponse], req *weftv1.PublishRequest) *weftv1.PublishResponse {
	t.Helper()
	must(t, s.Send(req))
	resp, err := s.Recv()
	must(t, err)
	if resp.GetId() != req.GetId() {
		t.Fatalf("acknowledgement of %d: want %d", resp.GetId(), req.GetId())
	}
	return resp
}

func snapshotOf(id uint64, f *weftv1.Fragment) *weftv1.PublishRequest {
	return &weftv1.PublishRequest{Id: id, Update: &weftv1.PublishRequest_Snapshot{Snapshot: f}}
}

func patchOf(id uint64, p *weftv1.Patch) *weftv1.PublishRequest {
	return &weftv1.PublishRequest{Id: id, Update: &weftv1.PublishRequest_Patch{Patch: p}}
}

func wantReason(t *testing.T, r *weftv1.PublishResponse, want weftv1.Violation_Reason) {
	t.Helper()
	if len(r.GetRejected().GetViolations()) == 0 || r.GetRejected().GetViolations()[0].GetReason() != want {
		t.Fatalf("answer %v: want reason %v", r, want)
	}
}

func wantCommitted(t *testing.T, r *weftv1.PublishResponse) {
	t.Helper()
	if r.GetCommitted().GetRevision() == 0 {
		t.Fatalf("answer %v: want committed", r)
	}
}

// demo is the table of these tests.
var demo = nft.TableID{Family: nft.FamilyIP, Name: "demo"}

// blocklist returns a fragment with a set and a chain that drops its members.
func blocklist(name string, members ...string) *weftv1.Fragment {
	return &weftv1.Fragment{Name: name, Tables: []*weftv1.Table{{
		Family: "ip", Name: "demo",
		Sets: []*weftv1.Set{{Name: "blocked", Type: "ipv4_addr", Elements: elements(members...)}},
		Chains: []*weftv1.Chain{{
			Name: "input", Type: "filter", Hook: "input", Priority: "filter",
			Rules: []*weftv1.Rule{{Text: "ip saddr @blocked counter drop"}},
		}},
	}}}
}

func elements(keys ...string) []*weftv1.Element {
	var out []*weftv1.Element
	for _, k := range keys {
		out = append(out, &weftv1.Element{Key: k})
	}
	return out
}

func patch(fragment string, add, remove []string) *weftv1.Patch {
	return &weftv1.Patch{Fragment: fragment, Tables: []*weftv1.TablePatch{{
		Family: "ip", Name: "demo",
		Elements: []*weftv1.ElementPatch{{Set: "blocked", Add: elements(add...), Remove: remove}},
	}}}
}

// session starts a session whose snapshots are what Put was given last, with
// the patches that were made to current.
func session(t *testing.T, c *client.Client, snapshot func(string) *weftv1.Fragment) *client.Session {
	t.Helper()
	s := c.Session(client.SessionConfig{Snapshot: snapshot})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func rejection(t *testing.T, err error, reason weftv1.Violation_Reason) *client.RejectedError {
	t.Helper()
	var r *client.RejectedError
	if !errors.As(err, &r) {
		t.Fatalf("error is %v: want a rejection", err)
	}
	if !r.Has(reason) {
		t.Fatalf("rejection is %v (%v): want reason %v", r, r.Violations, reason)
	}
	return r
}

func wantElements(t *testing.T, k *aggregatortest.Kernel, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, k.Elements(demo, "blocked")); diff != "" {
		t.Fatalf("elements (-want +got):\n%s", diff)
	}
}

// eventLog collects what a watcher sees.
type eventLog struct {
	mu     sync.Mutex
	events []*weftv1.WatchResponse
}

func watch(t *testing.T, d *aggregatortest.Daemon) *eventLog {
	t.Helper()
	l := &eventLog{}
	ctx, cancel := context.WithCancel(context.Background())
	started, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_ = d.Aggregator.Watch(ctx, func() error { close(started); return nil }, func(e *weftv1.WatchResponse) error {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.events = append(l.events, e)
			return nil
		})
	}()
	<-started
	t.Cleanup(func() { cancel(); <-done })
	return l
}

func (l *eventLog) until(t *testing.T, what string, match func(*weftv1.WatchResponse) bool) *weftv1.WatchResponse {
	t.Helper()
	var found *weftv1.WatchResponse
	aggregatortest.Eventually(t, what, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		i := slices.IndexFunc(l.events, match)
		if i >= 0 {
			found = l.events[i]
		}
		return i >= 0
	})
	return found
}

// nth waits for the nth event that matches.
func (l *eventLog) nth(t *testing.T, n int, match func(*weftv1.WatchResponse) bool) *weftv1.WatchResponse {
	t.Helper()
	var found *weftv1.WatchResponse
	aggregatortest.Eventually(t, fmt.Sprintf("event %d", n), func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		left := n
		for _, e := range l.events {
			if !match(e) {
				continue
			}
			if left == 0 {
				found = e
				return true
			}
			left--
		}
		return false
	})
	return found
}

// database is the path of the database of a state directory.
func database(dir string) string { return filepath.Join(dir, "state.db") }

// openState opens a state directory beside the daemon.
func openState(dir string, failed func(kind string)) *statedir.Dir {
	log := slog.New(slog.DiscardHandler)
	return statedir.New(store.New(store.Config{Path: dir, Retry: time.Second, Logger: log, Failed: failed}), log)
}

// state returns what the database of a state directory holds, and the flows that
// are noted there. A daemon may be using it: a copy is read.
func state(t *testing.T, dir string) (*statedir.Contents, []conntrack.Stale) {
	t.Helper()
	copied := t.TempDir()
	for _, suffix := range []string{"", ".outdated"} {
		b, err := os.ReadFile(database(dir) + suffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		must(t, err)
		must(t, os.WriteFile(database(copied)+suffix, b, 0o600))
	}
	d := openState(copied, func(string) {})
	c, err := d.Load()
	must(t, err)
	must(t, d.Close())
	return c, c.Flows
}

// stored returns a durable fragment of publisher tester as it is on the disk; nil
// if there is none.
func stored(t *testing.T, dir, name string) *weftv1.Fragment {
	t.Helper()
	c, _ := state(t, dir)
	for _, f := range c.Fragments {
		if f.Key.Name == name {
			return f.Content
		}
	}
	return nil
}
