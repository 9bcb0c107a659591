package services

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/frontends/source"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

func TestConfigErrors(t *testing.T) {
	bit := 40
	for want, cfg := range map[string]Config{
		"no source":         {NodeName: "n"},
		"no node name":      {Source: newScript()},
		"masquerade bit 40": {Source: newScript(), NodeName: "n", MasqueradeBit: &bit},
		"prefix":            {Source: newScript(), NodeName: "n", Detect: render.Detect{CIDRs: []netip.Prefix{{}}}},
		"nothing to read":   {Source: brokenSource{}, NodeName: "n"},
	} {
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestNothingBeforeSync has Services known before everything is.
//
// Behaviour: 131.
func TestNothingBeforeSync(t *testing.T) {
	f := newFake(t)
	src := &script{batches: make(chan []any, 10)}
	frontend, _ := run(t, Config{Source: src, Socket: f.Socket})
	src.deliver(many(2)...)
	await(t, "the model", func() bool { return frontend.modelDirty() })
	if n := f.count(); n != 0 || frontend.Status().Synced {
		t.Errorf("%d updates before everything is known", n)
	}
	src.deliver(allKnown{})
	await(t, "all Services", func() bool { return f.served() == all(2) })
}

// statsOf returns the statistics of the model.
func statsOf(f *Frontend) model.Stats {
	f.state.mu.Lock()
	defer f.state.mu.Unlock()
	return f.state.model.Stats()
}

// modelDirty reports whether events wait for a refresh.
func (f *Frontend) modelDirty() bool {
	f.state.mu.Lock()
	defer f.state.mu.Unlock()
	return f.state.model.Dirty()
}

// TestSteadyStateIsPatches counts what is sent and what is not.
//
// Behaviour: 160.
func TestSteadyStateIsPatches(t *testing.T) {
	f := newFake(t)
	src := newScript(many(3)...)
	reg := prometheus.NewPedanticRegistry()
	frontend, _ := run(t, Config{Source: src, Socket: f.Socket, Registerer: reg})
	await(t, "all Services", func() bool { return f.served() == all(3) })
	src.deliver(setService("s3", 0, "10.96.0.4"), setSlice("s3", ipv4, "10.244.0.4"))
	await(t, "another Service", func() bool { return f.served() == all(4) })
	// Events without an outcome are not published.
	src.deliver(many(4)...)
	src.deliver(serviceGone("s0"))
	await(t, "one Service less", func() bool { return f.served() == all(4, 0) })
	await(t, "the acknowledgement", func() bool { return frontend.Status().Revision == 3 })
	publishtest.Equal(t, "updates", strings.Join(f.Updates(), " "), "snapshot patch patch")
	want := `
		# HELP weft_services_changes_total Services that changed on this node.
		# TYPE weft_services_changes_total counter
		weft_services_changes_total 5
		# HELP weft_services_events_total Events received from the source.
		# TYPE weft_services_events_total counter
		weft_services_events_total{kind="endpointslice"} 8
		weft_services_events_total{kind="service"} 9
		# HELP weft_services_publishes_total Updates sent to the aggregator, by result.
		# TYPE weft_services_publishes_total counter
		weft_services_publishes_total{result="committed"} 3
		weft_services_publishes_total{result="failed"} 0
		weft_services_publishes_total{result="rejected"} 0
		# HELP weft_services_services Services that are rendered.
		# TYPE weft_services_services gauge
		weft_services_services 3
		# HELP kubeproxy_sync_proxy_rules_service_changes_total Cumulative proxy rules Service changes
		# TYPE kubeproxy_sync_proxy_rules_service_changes_total counter
		kubeproxy_sync_proxy_rules_service_changes_total 9
		# HELP kubeproxy_sync_proxy_rules_endpoint_changes_total Cumulative proxy rules Endpoint changes
		# TYPE kubeproxy_sync_proxy_rules_endpoint_changes_total counter
		kubeproxy_sync_proxy_rules_endpoint_changes_total 8
	`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), metricChanges, metricPrefix+publish.MetricEvents, metricPrefix+publish.MetricPublishes, metricServices, metricServiceTotal, metricEndpointTotal); err != nil {
		t.Error(err)
	}
	if s := frontend.Model(); len(s.Services) != 3 || s.Revision != 3 {
		t.Errorf("model at revision %d with %d Services", s.Revision, len(s.Services))
	}
	if _, err := New(Config{Source: src, NodeName: "n", Registerer: reg}); err == nil {
		t.Error("metrics were registered twice without an error")
	}
}

type brokenSource struct{}

func (brokenSource) Subscribe(source.Subscription) error { return errors.New("nothing to read") }
func (brokenSource) Run(context.Context) error           { return nil }

// TestMinSyncPeriod publishes the first change after a quiet time at once, and what
// comes soon after it together, no earlier than the period allows.
//
// Behaviour: 135.
func TestMinSyncPeriod(t *testing.T) {
	const period = time.Second
	fake := newFake(t)
	src := newScript(many(1)...)
	f, _ := runAt(t, Config{Source: src, Socket: fake.Socket}, period)
	await(t, "the first commit", func() bool { return f.Status().Published && f.Status().Pending.IsZero() })
	first := f.Status()
	await(t, "a quiet time", func() bool { return time.Since(first.Acknowledged) > period })

	sent := time.Now()
	src.deliver(many(2)[2:]...)
	await(t, "the change", func() bool { return f.Status().Revision == first.Revision+1 })
	second := f.Status()
	if took := second.Acknowledged.Sub(sent); took >= period {
		t.Errorf("the first change after a quiet time took %v", took)
	}
	// A burst of batches, each by itself.
	for i := range 50 {
		name := fmt.Sprintf("burst%d", i)
		src.deliver(setService(name, 0, fmt.Sprintf("10.96.1.%d", i+1)), setSlice(name, ipv4, fmt.Sprintf("10.244.1.%d", i+1)))
	}
	await(t, "the burst", func() bool { return len(strings.Fields(fake.served())) == 52 && f.Status().Pending.IsZero() })
	third := f.Status()
	publishtest.Equal(t, "updates of a burst of 50 changes", third.Revision-second.Revision, 1)
	// An acknowledgement is noted a little after it came.
	if gap := third.Acknowledged.Sub(second.Acknowledged); gap < period-10*time.Millisecond {
		t.Errorf("the burst was committed %v after the one before, want at least %v", gap, period)
	}
}

// TestEventToCommit measures from the arrival of the oldest event to the commit, also
// where the first attempts fail, and nothing for events without an outcome.
func TestEventToCommit(t *testing.T) {
	fake, clock := newFake(t), publishtest.NewClock()
	src := &script{batches: make(chan []any, 100)}
	seen := make(chan float64, 10)
	f, err := New(Config{Source: src, NodeName: "node-1", Socket: fake.Socket, Now: clock.Now, MinSyncPeriod: -1})
	must(t, err)
	f.metrics.Latency = prometheus.ObserverFunc(func(v float64) { seen <- v })
	start(t, f)
	src.deliver(many(2)...)
	await(t, "the events", func() bool { return !f.Status().Pending.IsZero() })
	// Before everything is known nothing can be published: it counts from then.
	clock.Move(time.Hour)
	src.deliver(allKnown{})
	await(t, "the first commit", func() bool { return f.Status().Published && f.Status().Pending.IsZero() })
	src.deliver(many(2)...)
	await(t, "the events without an outcome", func() bool { return f.Status().Pending.IsZero() && len(src.batches) == 0 })
	fake.Stop()
	src.deliver(many(3)...)
	await(t, "the event", func() bool { return !f.Status().Pending.IsZero() })
	clock.Move(7 * time.Second)
	src.deliver(many(4)...)
	fake.Start(t)
	await(t, "all Services", func() bool { return fake.served() == all(4) && f.Status().Pending.IsZero() })
	if first, second := <-seen, <-seen; first != 0 || second != 7 {
		t.Errorf("observed %v, then %v", first, second)
	}
	// The later event is in the same update, or in one of its own.
	if more := len(seen); more > 1 {
		t.Errorf("%d more observations", more)
	}
}

const ipv4 = discoveryv1.AddressTypeIPv4

// many returns Services s0 to s(n-1), each with the endpoint 10.244.0.(i+1).
func many(n int) (out []any) {
	for i := range n {
		name := fmt.Sprintf("s%d", i)
		out = append(out, setService(name, 0, fmt.Sprintf("10.96.0.%d", i+1)), setSlice(name, ipv4, fmt.Sprintf("10.244.0.%d", i+1)))
	}
	return out
}

func endpointOf(i int) string { return fmt.Sprintf("10.244.0.%d . 8080", i+1) }

// all lists the addresses of n Services but some.
func all(n int, but ...int) string {
	var out []string
next:
	for i := range n {
		for _, b := range but {
			if i == b {
				continue next
			}
		}
		out = append(out, fmt.Sprintf("10.96.0.%d", i+1))
	}
	return strings.Join(out, " ")
}

// TestRefusedServices has bad Services among good ones: the good ones are published
// and go on changing, and the node is healthy. Each bad one has one event and one line in the log.
//
// Behaviour: 169.
func TestRefusedServices(t *testing.T) {
	for _, named := range []bool{true, false} {
		t.Run(fmt.Sprintf("named=%t", named), func(t *testing.T) {
			f := newFake(t)
			f.Judge(poisoned(named, endpointOf(2), endpointOf(5)))
			src, clock := newScript(append(many(8), setNode(netip.MustParseAddr("192.0.2.1")))...), publishtest.NewClock()
			var events notes
			var log lines
			frontend, _ := run(t, Config{Source: src, Socket: f.Socket, Events: &events, Now: clock.Now, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			await(t, "the good Services", func() bool { return f.served() == all(8, 2, 5) })
			await(t, "the list of bad ones", func() bool {
				err := frontend.Degraded()
				return strings.Join(frontend.Status().Quarantined, " ") == "default/s2 default/s5" && err != nil && strings.HasSuffix(err.Error(), "2 refused: default/s2, default/s5")
			})
			for _, name := range []string{"default/s2", "default/s5"} {
				want := name + " Warning ServiceRefused its rules are rejected, so it does not work on node node-1: "
				if got := events.String(); strings.Count(got, want) != 1 || !strings.Contains(got, "operation not supported") || strings.Count(log.String(), "items=["+name) != 1 {
					t.Errorf("events:\n%s\nlog:\n%s", got, log.String())
				}
			}
			await(t, "the acknowledgement", func() bool { return frontend.Status().Pending.IsZero() })
			clock.Move(time.Hour)
			publishtest.Equal(t, "the node with refused Services", probes(frontend), "200 200")
			// Others change without them.
			src.deliver(setService("s8", 0, "10.96.0.9"), setSlice("s8", ipv4, "10.244.0.9"))
			await(t, "a new Service", func() bool { return f.served() == all(9, 2, 5) })
			// One is repaired, one is deleted.
			src.deliver(setSlice("s2", ipv4, "10.244.1.1"), serviceGone("s5"))
			await(t, "the repaired Service", func() bool { return f.served() == all(9, 5) })
			await(t, "an empty list", func() bool { return len(frontend.Status().Quarantined) == 0 })
			// A Service that is there turns bad.
			f.Judge(poisoned(named, "10.244.6.6 . 8080"))
			src.deliver(setSlice("s0", ipv4, "10.244.6.6"), setSlice("s1", ipv4, "10.244.7.7"))
			await(t, "the other change", func() bool {
				return f.Elements()[object("ip", "endpoints", "10.96.0.2 . tcp . 80 . 0")] == "10.244.7.7 . 8080"
			})
			await(t, "going on without it", func() bool { return f.served() == all(9, 0, 5) })
		})
	}
}

func TestPassingRefusal(t *testing.T) {
	f := newFake(t)
	n := 0
	f.Judge(func(map[string]string) []*weftv1.Violation {
		if n++; n > 1 {
			return nil
		}
		return []*weftv1.Violation{{Message: "out of memory", Reason: weftv1.Violation_REASON_KERNEL}}
	})
	frontend, _ := run(t, Config{Source: newScript(many(3)...), Socket: f.Socket})
	await(t, "all Services", func() bool { return f.served() == all(3) })
	await(t, "the acknowledgement", func() bool { return frontend.Status().Published })
	if q := frontend.Status().Quarantined; len(q) != 0 || f.count() != 2 {
		t.Errorf("after %v quarantined %v", f.Updates(), q)
	}
}

// lines is a log that can be read while it is written.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// withPorts makes a Service default/name with n TCP ports and without endpoints.
func withPorts(name, ip string, created int64, n int, external ...string) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, CreationTimestamp: metav1.Unix(created, 0)}}
	s.Spec.ClusterIP, s.Spec.ClusterIPs, s.Spec.ExternalIPs = ip, []string{ip}, external
	for i := range n {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: fmt.Sprint("p", i), Protocol: corev1.ProtocolTCP, Port: int32(i + 1)})
	}
	return s
}

// listeners counts the ports of an address that are in force.
func listeners(elements map[string]string, addr string) (n int) {
	for k := range elements {
		if strings.Contains(k, "services { "+addr+" . ") {
			n++
		}
	}
	return n
}

// TestPortionsOfServices has large Services among small ones in one batch: the small ones are in
// force first, and the large ones in several updates; of two that hand a listener over, it is
// always there.
func TestPortionsOfServices(t *testing.T) {
	const handed, ports = "203.0.113.1", 9_000
	fake := newFake(t)
	src := newScript(withPorts("old", "10.96.9.1", 1, 1, handed))
	f, _ := run(t, Config{Source: src, Socket: fake.Socket})
	await(t, "the first commit", func() bool { return f.Status().Published && f.Status().Pending.IsZero() })

	huge := model.Key{Namespace: "default", Name: "huge"}
	var updates []string
	fake.Judge(func(elements map[string]string) []*weftv1.Violation {
		small, of, heir := listeners(elements, "10.96.0.3"), listeners(elements, "10.96.9.2"), listeners(elements, handed)
		updates = append(updates, fmt.Sprint(small))
		if heir < 1 {
			t.Error("no Service has the listener that is handed over")
		}
		if o := f.publisher.Outcome(huge); o.State == publish.InForce && of < ports {
			t.Errorf("the Service is in force with %d of its ports", of)
		}
		return nil
	})
	release := fake.Hold()
	src.deliver(many(1)...)
	await(t, "an update in flight", func() bool { return !f.Status().Pending.IsZero() })
	large := []any{withPorts("huge", "10.96.9.2", 2, ports), withPorts("heir", "10.96.9.3", 2, ports, handed), withPorts("old", "10.96.9.1", 1, 1)}
	src.deliver(append(large, many(3)...)...)
	await(t, "the events", func() bool { return len(src.batches) == 0 })
	release()
	await(t, "all Services", func() bool { return f.Status().Pending.IsZero() && f.publisher.Outcome(huge).State == publish.InForce })
	fake.Judge(nil)
	if got := strings.Join(slices.Compact(slices.Clone(updates)), " "); got != "0 2" || len(updates) < 8 {
		t.Errorf("the updates have %v of the small Services: want 0 and then 2, and 8 at least", updates)
	}
}
