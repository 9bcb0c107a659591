package monitoring

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// incident is a fault and its reports.
type incident struct {
	// the test's name, and the table's text
	name, fault string
	// split runs the aggregator and the Service frontend as separate processes.
	split bool
	// fresh makes the fault before weft's first start.
	fresh bool
	// shifted runs weft under a separate wall clock.
	shifted bool
	// uptime is weft's age at the fault.
	uptime time.Duration
	seed   func(*testing.T, *patient)
	// during checks functions that must work in spite of the fault. It may be nil.
	during func(*testing.T, *patient)
	heal   func(*testing.T, *patient)
	// health is a part of a line of /readyz?verbose or of its error, event the reason and a part of the
	// note of an Event, log a part of a log line; "" for an unreported fault. alert must fire.
	health, alert, event, log string
	// later is true if event and log come only after the fault: during it weft does not run, or the API
	// server rejects events.
	later bool
	// the reason of an empty cell
	reason string
}

// lasting is a log line of a lasting condition.
const lasting = `msg="weft is degraded" condition=`

// in the table's order, long ones first
var incidents = []incident{
	{
		name: "clock", fault: "the wall clock jumps by hours, both ways", shifted: true,
		seed: func(t *testing.T, p *patient) { p.setClock(t, "5h") }, during: jumping,
		heal:   func(t *testing.T, p *patient) { p.setClock(t, "0s") },
		health: "[!]clock degraded: the wall clock jumped by +5h0m0s", alert: "WeftClockJumped", event: "WeftDegraded clock", log: "the wall clock jumped",
	},
	{
		name: "two", fault: "a second weft on the node",
		seed: func(t *testing.T, p *patient) { p.second.start(t) }, during: updates,
		heal:   func(_ *testing.T, p *patient) { p.second.stop() },
		health: "[!]socket degraded: another weft", alert: "WeftSecondStarted", event: "WeftDegraded socket", log: "socket is in use by process",
	},
	{
		name: "family-at-start", fault: "the kernel refuses IPv6 at the start: another program owns the table `ip6 weft`", fresh: true,
		seed: func(t *testing.T, p *patient) { p.owned(t, "ip6 weft") }, during: updates,
		heal:   func(_ *testing.T, p *patient) { _ = p.foreign.Close() },
		health: "[!]services degraded: services: IPv6 stays as it was", alert: "WeftServicesDegraded", event: "WeftDegraded services", log: "a part of the fragment is rejected",
	},
	{
		name: "frontend-dead", fault: "the Service frontend is dead", split: true, uptime: 35 * time.Second,
		seed:   func(_ *testing.T, p *patient) { p.weft.stop() },
		heal:   func(t *testing.T, p *patient) { p.weft.start(t) },
		health: "[!]publishers degraded: publishers have gone", alert: "WeftPublisherMissing", log: lasting + "publishers",
		reason: "the aggregator does not speak to the API server; the kubelet has Events of the container",
	},
	{
		name: "api-away-at-start", fault: "the API server is unreachable at the start", fresh: true, later: true,
		seed:   func(_ *testing.T, p *patient) { p.api.stop() },
		heal:   func(t *testing.T, p *patient) { p.api.start(t) },
		health: "[-]services failed: services: not published", alert: "WeftNotReady", event: "WeftRecovered api-server", log: "the Kubernetes API does not answer",
	},
	{
		name: "api-away", fault: "the API server is unreachable later", later: true,
		seed:   func(_ *testing.T, p *patient) { p.api.stop() },
		heal:   func(t *testing.T, p *patient) { p.api.start(t) },
		health: "[!]api-server degraded", alert: "WeftAPIServerUnreachable", event: "WeftRecovered api-server", log: "the Kubernetes API does not answer",
	},
	{
		name: "credentials", fault: "the API server refuses the credentials", later: true,
		seed:   func(t *testing.T, p *patient) { p.api.stop(); p.api.with(t, "-status", "401") },
		heal:   func(t *testing.T, p *patient) { p.api.stop(); p.api.with(t) },
		health: "refuses the credentials", alert: "WeftAPIServerUnreachable", event: "WeftRecovered api-server", log: "refuses the credentials",
	},
	{
		name: "certificate", fault: "the certificate of the API server has expired", later: true,
		seed:   func(t *testing.T, p *patient) { p.api.stop(); p.certify(t, true); p.api.start(t) },
		heal:   func(t *testing.T, p *patient) { p.api.stop(); p.certify(t, false); p.api.start(t) },
		health: "certificate has expired", alert: "WeftAPIServerUnreachable", event: "WeftRecovered api-server", log: "certificate has expired",
	},
	{
		name: "socket", fault: "the frontend may not use the socket", split: true,
		seed: func(t *testing.T, p *patient) {
			p.weft.stop()
			p.weft.uid = 4001
			must(t, "", "chmod", "0600", p.socket)
			p.weft.start(t)
		},
		heal:   func(t *testing.T, p *patient) { p.weft.stop(); p.weft.uid = 0; p.weft.start(t) },
		health: "[-]services failed", alert: "WeftNotReady", event: "WeftDegraded services", log: "permission denied",
	},
	{
		name: "aggregator-dead", fault: "the aggregator is dead", split: true,
		seed: func(_ *testing.T, p *patient) { p.aggregator.stop() }, during: forwards,
		heal:   func(t *testing.T, p *patient) { p.aggregator.start(t) },
		health: "[!]services degraded: services: the aggregator does not answer", alert: "WeftServicesDegraded", event: "WeftDegraded services", log: "no stream to the aggregator",
	},
	{
		name: "state-full", fault: "the state directory is full",
		seed: func(t *testing.T, p *patient) {
			// dd fails at the end.
			_, _ = run(t, "", "dd", "if=/dev/zero", "of="+filepath.Join(p.state, "filler"), "bs=4k")
			p.publish(t)
		},
		during: updates,
		heal:   func(t *testing.T, p *patient) { must(t, "", "rm", filepath.Join(p.state, "filler")) },
		health: "[!]state-directory degraded", alert: "WeftStateNotStored", event: "WeftDegraded state-directory", log: "no space left on device",
	},
	{
		name: "conntrack", fault: "the connection tracking table is full",
		seed: func(t *testing.T, p *patient) { p.track(t) }, during: updates,
		heal:   func(t *testing.T, _ *patient) { must(t, "", "conntrack", "-F") },
		health: "[!]conntrack degraded", alert: "WeftConntrackNearlyFull", event: "WeftDegraded conntrack", log: lasting + "conntrack",
	},
	{
		name: "kube-proxy", fault: "kube-proxy still runs: it has the port", fresh: true,
		seed: func(t *testing.T, p *patient) { p.listen(t, healthAddress) }, during: updates,
		heal:   func(_ *testing.T, p *patient) { p.closeListener() },
		health: "[!]http degraded", alert: "WeftNodeMisfit", event: "FailedToStartProxierHealthcheck", log: "address already in use",
	},
	{
		name: "cluster-cidr", fault: "a wrong cluster CIDR", fresh: true,
		seed: func(_ *testing.T, p *patient) { p.cidr = "172.16.0.0/12" }, during: updates,
		heal:   func(t *testing.T, p *patient) { p.weft.stop(); p.cidr = clusterCIDR; p.weft.start(t) },
		health: "[!]node degraded: the node's podCIDR", alert: "WeftNodeMisfit", event: "WeftDegraded node", log: "does not fit this node",
	},
	{
		name: "configuration", fault: "a broken configuration file",
		seed: func(t *testing.T, p *patient) {
			put(t, p.dir, "weft.yaml", "publishers: 7\n")
			p.weft.signal(syscall.SIGHUP)
		},
		during: updates,
		heal: func(t *testing.T, p *patient) {
			put(t, p.dir, "weft.yaml", configuration)
			p.weft.signal(syscall.SIGHUP)
		},
		health: "[!]configuration degraded", alert: "WeftConfigurationBroken", event: "WeftDegraded configuration", log: "weft.yaml",
	},
	{
		name: "oom", fault: "weft is killed, as the kernel does for its memory", later: true,
		// It restarts only after the report.
		seed:   func(_ *testing.T, p *patient) { p.weft.stop() },
		heal:   func(t *testing.T, p *patient) { p.weft.start(t) },
		health: "connection refused", alert: "WeftDown", event: "Starting weft", log: "weft did not end by itself the last time",
	},
}

func programs() string { return os.Getenv("WEFT_MONITORING_PROGRAMS") }
