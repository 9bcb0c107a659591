package services

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/frontends/source"
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
	if got := strings.Join(f.Updates(), " "); got != "snapshot patch patch" {
		t.Errorf("updates %q", got)
	}
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
