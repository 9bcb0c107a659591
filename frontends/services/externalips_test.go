package services

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/util/version"
)

// TestExternalIPsFollowTheServer changes the API server's version while the frontend runs. A feature gate
// overrides the version.
//
// Behaviour: 35.
func TestExternalIPsFollowTheServer(t *testing.T) {
	const address, off, on = "203.0.113.1", "external IPs of Services are ignored", "external IPs of Services are served"
	fake, log := newFake(t), &lines{}
	src := newScript(version.MustParse("1.40"), withPorts("web", "10.96.0.1", 1, 1, address), withPorts("plain", "10.96.0.2", 1, 1))
	f, _ := run(t, Config{Source: src, Socket: fake.Socket, Logger: slog.New(slog.NewTextHandler(log, nil)), Registerer: prometheus.NewRegistry()})
	for _, step := range []struct {
		version      string
		served       int
		offs, others int
	}{{"1.40", 0, 1, 0}, {"1.41", 0, 1, 0}, {"1.39", 1, 1, 1}, {"1.38", 1, 1, 1}, {"1.40", 0, 2, 1}} {
		src.deliver(version.MustParse(step.version), setNode())
		await(t, "external IPs at "+step.version, func() bool {
			elements, text := fake.Elements(), log.String()
			return listeners(elements, "10.96.0.1") == 1 && listeners(elements, address) == step.served && strings.Count(text, off) >= step.offs && strings.Count(text, on) >= step.others
		})
		text := log.String()
		if strings.Count(text, off) != step.offs || strings.Count(text, on) != step.others || strings.Count(text, "services=1") != step.offs+step.others {
			t.Errorf("%s: log %s", step.version, text)
		}
		all := f.Model().Services
		if all[0].ExternalIPsIgnored || all[1].ExternalIPsIgnored != (step.served == 0) {
			t.Errorf("%s: external IPs ignored: %v and %v", step.version, all[0].ExternalIPsIgnored, all[1].ExternalIPsIgnored)
		}
		if enabled := testutil.ToFloat64(f.metrics.proxy.externalIPs); enabled != float64(step.served) {
			t.Errorf("%s: the metric of the gate is %v", step.version, enabled)
		}
	}
	for _, allow := range []bool{true, false} {
		src := newScript()
		f, err := New(Config{Source: src, NodeName: "node-1", Socket: fake.Socket, AllowExternalIPs: &allow})
		must(t, err)
		if src.sub.Version != nil || testutil.ToFloat64(f.metrics.proxy.externalIPs) == 0 == allow {
			t.Errorf("the gate is %v: a version overrides it, or the metric is %v", allow, !allow)
		}
	}
}
