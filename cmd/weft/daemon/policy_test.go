package daemon

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/frontends/testing/apitest"
)

// parse returns the daemon of a command line, with its frontends.
func parse(t *testing.T, verb Verb, args ...string) (*daemon, error) {
	t.Helper()
	set := pflag.NewFlagSet(string(verb), pflag.ContinueOnError)
	f := AddFlags(set, verb)
	must(t, set.Parse(args))
	s, _, err := f.complete(io.Discard)
	must(t, err)
	d := &daemon{Flags: f, settings: s, log: slog.New(slog.DiscardHandler), registry: prometheus.NewRegistry()}
	if verb.mayHavePolicy() {
		if err := f.policy.check(set, d.hasPolicy()); err != nil {
			return d, err
		}
	}
	return d, d.newFrontends()
}

// TestPolicyFlags rejects flags of the NetworkPolicy frontend that have no effect or a wrong
// value.
func TestPolicyFlags(t *testing.T) {
	for _, tt := range []struct {
		verb Verb
		args []string
		want string
	}{
		{VerbRun, []string{"--policy-start=deny"}, "--policy-start: it needs --network-policy"},
		{VerbRun, []string{"--network-policy", "--policy-start=maybe"}, "want allow or deny"},
		{VerbPolicy, []string{"--policy-drop-log=-1"}, "want at least 0"},
		{VerbPolicy, []string{"--policy-recheck=0"}, "want more than 0"},
		{VerbPolicy, []string{"--cluster-policy-status"}, "it needs an API server"},
		{VerbRun, []string{"--cluster-policy-status"}, "it needs --network-policy"},
	} {
		_, err := parse(t, tt.verb, append(tt.args, "--manifests", t.TempDir())...)
		if !errors.As(err, new(*cli.UsageError)) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("weft %s %s: %v", tt.verb, strings.Join(tt.args, " "), err)
		}
	}
}

// TestFrontendsOfVerbs makes the frontends of each verb.
func TestFrontendsOfVerbs(t *testing.T) {
	for _, tt := range []struct {
		verb  Verb
		args  []string
		n     int
		proxy bool
	}{
		{VerbRun, nil, 1, true},
		{VerbRun, []string{"--network-policy", "--policy-start=deny"}, 2, true},
		{VerbServices, nil, 1, true},
		{VerbPolicy, nil, 1, false},
	} {
		d, err := parse(t, tt.verb, append(tt.args, "--manifests", t.TempDir(), "--hostname-override=n")...)
		must(t, err)
		if len(d.frontends) != tt.n || (d.proxy != nil) != tt.proxy || d.cluster.nodeName != "n" {
			t.Errorf("weft %s %v: %d frontends, Service health %t", tt.verb, tt.args, len(d.frontends), d.proxy != nil)
		}
		if tt.verb == VerbPolicy && d.healthy() == nil {
			t.Error("weft policy is healthy before its first commit")
		}
		must(t, d.newMonitor(nil))
		conditions := 0
		for publisher, tables := range d.servedTables() {
			for _, table := range tables {
				if table.Name == "conditions" {
					conditions++
				}
			}
			if len(tables) == 0 {
				t.Errorf("weft %s %v: %s has no tables", tt.verb, tt.args, publisher)
			}
		}
		if conditions != 1 {
			t.Errorf("weft %s %v: %d tables of conditions, want 1", tt.verb, tt.args, conditions)
		}
	}
}

// TestPolicySettings has the ports of weft policy.
func TestPolicySettings(t *testing.T) {
	dir := t.TempDir()
	d, err := parse(t, VerbPolicy, "--manifests", dir, "--socket", dir+"/weft.sock", "--profiling")
	must(t, err)
	if h := d.settings.HTTP; h.metrics != policyMetricsAddress || h.healthz != policyHealthzAddress || !h.profiling {
		t.Errorf("settings of the HTTP servers: %+v", h)
	}
}

// TestOneWatchPerKind follows an API server with both frontends: what both follow is
// requested once.
func TestOneWatchPerKind(t *testing.T) {
	api := apitest.New(t)
	d, err := parse(t, VerbRun, "--network-policy", "--cluster-policy-status", "--master", api.URL(), "--hostname-override=n")
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	g, ctx := errgroup.WithContext(ctx)
	d.cluster.run(ctx, g, d.verb.hasServices())
	watches := func(resource string) (n int) {
		for _, r := range api.Requests(resource) {
			if r.Verb == "stream" || r.Verb == "watch" {
				n++
			}
		}
		return n
	}
	aggregatortest.Eventually(t, "a watch of each kind", func() bool {
		for _, r := range []string{"services", "endpointslices", "nodes", "servicecidrs", "pods", "namespaces", "networkpolicies"} {
			if watches(r) == 0 {
				return false
			}
		}
		return true
	})
	if nodes, cidrs := watches("nodes"), watches("servicecidrs"); nodes != 1 || cidrs != 1 {
		t.Errorf("%d watches of nodes, %d of servicecidrs: want one each", nodes, cidrs)
	}
	cancel()
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}
