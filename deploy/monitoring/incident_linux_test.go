package monitoring

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// incident is a fault and what is reported of it.
type incident struct {
	// name is that of the test, fault what the table says.
	name, fault string
	// split runs the aggregator and the Service frontend as processes of their own.
	split bool
	// fresh seeds the fault before weft starts for the first time.
	fresh bool
	seed  func(*testing.T, *patient)
	heal  func(*testing.T, *patient)
	// health is a part of a line of /readyz?verbose, event the reason and a part of the note of an Event, log
	// a part of a log line: what must be reported, "" for nothing. Alert is an alert whose
	// expression must have a result.
	health, alert, event, log string
}

// incidents are those of the table. Not here: a jump of the wall clock, which belongs to the whole machine, a family that the
// kernel refuses, and a full connection tracking table, which is the machine's too.
var incidents = []incident{
	{
		name: "api-away-at-start", fault: "the API server is unreachable at the start", fresh: true,
		seed:   func(_ *testing.T, p *patient) { p.api.stop() },
		heal:   func(t *testing.T, p *patient) { p.api.start(t) },
		health: "[-]services failed: services: not published", alert: "WeftNotReady", log: "the Kubernetes API does not answer",
	},
	{
		name: "api-away", fault: "the API server is unreachable later",
		seed:   func(_ *testing.T, p *patient) { p.api.stop() },
		heal:   func(t *testing.T, p *patient) { p.api.start(t) },
		health: "[!]api-server degraded", alert: "WeftAPIServerUnreachable", log: "the Kubernetes API does not answer",
	},
	{
		name: "credentials", fault: "the API server refuses the credentials",
		seed:   func(t *testing.T, p *patient) { p.api.stop(); p.api.with(t, "-status", "401") },
		heal:   func(t *testing.T, p *patient) { p.api.stop(); p.api.with(t) },
		health: "refuses the credentials", alert: "WeftAPIServerUnreachable", log: "refuses the credentials",
	},
	{
		name: "certificate", fault: "the certificate of the API server has expired",
		seed:   func(t *testing.T, p *patient) { p.api.stop(); p.certify(t, true); p.api.start(t) },
		heal:   func(t *testing.T, p *patient) { p.api.stop(); p.certify(t, false); p.api.start(t) },
		health: "certificate has expired", alert: "WeftAPIServerUnreachable", log: "certificate has expired",
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
		health: "[-]services failed", alert: "WeftNotReady", log: "permission denied",
	},
	{
		name: "state-full", fault: "the state directory is full",
		seed: func(t *testing.T, p *patient) {
			// All of it fails at last.
			_, _ = run(t, "", "dd", "if=/dev/zero", "of="+filepath.Join(p.state, "filler"), "bs=4k")
			p.publish(t)
		},
		heal: func(t *testing.T, p *patient) {
			must(t, "", "rm", filepath.Join(p.state, "filler"))
			p.publish(t)
		},
		health: "[!]state-directory degraded", alert: "WeftStateNotStored", event: "WeftDegraded state-directory", log: "no space left on device",
	},
	{
		name: "kube-proxy", fault: "kube-proxy still runs: it has the port", fresh: true,
		seed:   func(t *testing.T, p *patient) { p.listen(t, healthAddress) },
		heal:   func(_ *testing.T, p *patient) { p.closeListener() },
		health: "", alert: "WeftNodeMisfit", event: "FailedToStartProxierHealthcheck", log: "address already in use",
	},
	{
		name: "cluster-cidr", fault: "a wrong cluster CIDR", fresh: true,
		seed:   func(_ *testing.T, p *patient) { p.cidr = "172.16.0.0/12" },
		heal:   func(t *testing.T, p *patient) { p.weft.stop(); p.cidr = clusterCIDR; p.weft.start(t) },
		health: "[!]node degraded: the node's podCIDR", alert: "WeftNodeMisfit", event: "WeftDegraded node", log: "does not fit this node",
	},
	{
		name: "aggregator-dead", fault: "the aggregator is dead", split: true,
		seed:  func(_ *testing.T, p *patient) { p.aggregator.stop() },
		heal:  func(t *testing.T, p *patient) { p.aggregator.start(t) },
		alert: "WeftDown", log: "aggregator",
	},
	{
		name: "frontend-dead", fault: "the Service frontend is dead", split: true,
		seed:  func(_ *testing.T, p *patient) { p.weft.stop() },
		heal:  func(t *testing.T, p *patient) { p.weft.start(t) },
		alert: "WeftDown",
	},
	{
		name: "configuration", fault: "a broken configuration file",
		seed: func(t *testing.T, p *patient) {
			put(t, p.dir, "weft.yaml", "publishers: 7\n")
			p.weft.signal(syscall.SIGHUP)
		},
		heal: func(t *testing.T, p *patient) {
			put(t, p.dir, "weft.yaml", configuration)
			p.weft.signal(syscall.SIGHUP)
		},
		health: "[!]configuration degraded", alert: "WeftConfigurationBroken", event: "WeftDegraded configuration", log: "weft.yaml",
	},
	{
		name: "two", fault: "a second weft on the node",
		seed: func(t *testing.T, p *patient) { p.second.start(t) },
		heal: func(_ *testing.T, p *patient) { p.second.stop() },
		log:  "socket is in use by process",
	},
	{
		name: "oom", fault: "weft is killed, as the kernel does for its memory",
		// It is started again only when it has been noticed.
		seed:  func(_ *testing.T, p *patient) { p.weft.stop() },
		heal:  func(t *testing.T, p *patient) { p.weft.start(t) },
		alert: "WeftDown",
	},
}

// programs is the directory of the programs.
func programs() string { return os.Getenv("WEFT_MONITORING_PROGRAMS") }
