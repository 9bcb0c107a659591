package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/aggregator/testing/nametest"
	"github.com/weft-proxy/weft/frontends/policy/localstate"
	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/source"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

const example = "../../deploy/examples/policies/shop.yaml"

// recorder keeps events as "Kind/name reason".
type recorder struct {
	mu     sync.Mutex
	events []string
}

func (r *recorder) Object(ref corev1.ObjectReference, _, reason, _ string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, ref.APIVersion+" "+ref.Kind+"/"+ref.Name+" "+reason)
}

func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.events, ", ")
}

// lab is a frontend on a directory of manifests, with an aggregator that keeps elements.
type lab struct {
	*Frontend
	dir    string
	agg    *publishtest.Aggregator
	events *recorder
	reg    *prometheus.Registry
}

// runFrontend runs a frontend of node-a until the function that it returns is called. Without
// another source it reads a directory.
func runFrontend(t *testing.T, dir string, cfg Config, before ...func(*Frontend)) (f *Frontend, stop func()) {
	t.Helper()
	if cfg.Source == nil {
		src, err := source.NewManifests(dir, nil)
		must(t, err)
		cfg.Source = src
	}
	cfg.NodeName, cfg.MinInterval = cmp.Or(cfg.NodeName, "node-a"), -1
	f, err := New(cfg)
	must(t, err)
	for _, b := range before {
		b(f)
	}
	ctx, cancel := context.WithCancel(context.Background())
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return cfg.Source.Run(ctx) })
	g.Go(func() error { return f.Run(ctx) })
	stop = sync.OnceFunc(func() {
		cancel()
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return f, stop
}

// newLab runs a frontend until the test ends.
func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{dir: t.TempDir(), agg: publishtest.New(t), events: &recorder{}, reg: prometheus.NewPedanticRegistry()}
	text, err := os.ReadFile(example)
	must(t, err)
	l.write(t, "shop.yaml", string(text))
	l.Frontend, _ = runFrontend(t, l.dir, Config{Socket: l.agg.Socket, Events: l.events, Registerer: l.reg}, func(f *Frontend) {
		if f.Ready() == nil || f.Healthy() == nil {
			t.Error("ready before the start")
		}
	})
	await(t, "the first commit", func() bool { return l.Ready() == nil && l.Healthy() == nil })
	return l
}

// write replaces a manifest; an empty text removes it.
func (l *lab) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(l.dir, name)
	if text == "" {
		must(t, os.Remove(path))
		return
	}
	put(t, path, text)
}

// has reports whether the aggregator has an element of the map of isolated pods.
func (l *lab) has(direction, addr string) bool {
	for k := range l.agg.Elements() {
		if of := nametest.Parse(k); of.GetName() == direction && of.GetKey() == addr {
			return true
		}
	}
	return false
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	aggregatortest.Eventually(t, what, ok)
}

const badPolicy = `apiVersion: policy.networking.k8s.io/v1alpha2
kind: ClusterNetworkPolicy
metadata: {name: bad}
spec:
  tier: Admin
  priority: 1
  subject: {pods: {namespaceSelector: {}, podSelector: {matchLabels: {app: db}}}}
  egress: [{action: Accept, to: [{domainNames: [example.com]}]}]
`

// TestFrontend publishes the policies of a directory, and follows changes.
//
// Policy behaviour: 52, 56.
func TestFrontend(t *testing.T) {
	l := newLab(t)
	await(t, "the pods", func() bool {
		return l.has("ingress", "10.244.1.5") && l.has("egress", "10.244.1.6") && !l.has("egress", "10.244.1.5")
	})
	await(t, "the answer", func() bool { return l.state.State().Pods[0].Outcome.State == publish.InForce })
	s := l.state.State()
	if len(s.Pods) != 2 || len(s.Policies) != 2 || s.Node.Name != "node-a" || s.Stats.LocalPods != 2 {
		t.Errorf("state %+v", s)
	}
	for _, p := range s.Policies {
		if p.Outcome.State != publish.InForce || p.Outcome.Revision == 0 || len(p.Problems) > 0 {
			t.Errorf("policy %+v", p)
		}
	}
	for _, set := range s.Sets {
		if set.Size == 0 {
			t.Errorf("set %+v", set)
		}
	}
	l.write(t, "bad.yaml", badPolicy)
	await(t, "the isolation by a policy that is not valid", func() bool { return l.has("egress", "10.244.1.5") })
	bad := model.PolicyID{Tier: model.TierAdmin, Name: "bad"}
	s = l.state.State()
	if i := slices.IndexFunc(s.Policies, func(p localstate.PolicyState) bool { return p.ID == bad }); i < 0 || len(s.Policies[i].Problems) != 1 {
		t.Errorf("state of a policy that is not valid: %+v", s)
	}
	await(t, "its Event", func() bool {
		return strings.Contains(l.events.text(), "policy.networking.k8s.io/v1alpha2 ClusterNetworkPolicy/bad InvalidPolicy")
	})
	await(t, "the end of the backlog", func() bool { return l.Status().Pending.IsZero() })
	if s := l.Status(); !s.Synced || s.Revision == 0 || len(s.Rejected) > 0 {
		t.Errorf("status %+v", s)
	}
	l.write(t, "bad.yaml", "")
	await(t, "the end of the isolation", func() bool { return !l.has("egress", "10.244.1.5") })
	if n := len(l.Tables()); n != 3 {
		t.Errorf("%d tables", n)
	}
	metrics, err := l.reg.Gather()
	must(t, err)
	got := make(map[string]float64)
	for _, m := range metrics {
		got[m.GetName()] = m.GetMetric()[0].GetGauge().GetValue() + float64(m.GetMetric()[0].GetHistogram().GetSampleCount())
	}
	if got[metricPods] != 2 || got[metricPolicies] != 2 || got[metricSets] < 3 || got[metricPrefix+publish.MetricLatency] < 2 || got[metricPrefix+publish.MetricRevision] == 0 {
		t.Errorf("metrics %v", got)
	}
}

// rejects is a judge that rejects updates in which the chain of a policy is in use, and names it.
func (l *lab) rejects(policy string) publishtest.Judge {
	return func(elements map[string]string) []*weftv1.Violation {
		used := fmt.Sprint(slices.Collect(maps.Values(elements)))
		for _, t := range l.content.Snapshot().GetTables() {
			for _, c := range t.GetChains() {
				for _, r := range c.GetRules() {
					name, jumps := strings.CutPrefix(r.GetText(), "jump ")
					if jumps && strings.Contains(name, policy) && strings.Contains(used, c.GetName()) {
						return []*weftv1.Violation{{
							Object:  &weftv1.ObjectName{Kind: "chain", Family: t.GetFamily(), Table: t.GetName(), Name: name},
							Message: "no room", Reason: weftv1.Violation_REASON_LIMIT,
						}}
					}
				}
			}
		}
		return nil
	}
}

const newPolicy = `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: new, namespace: shop}
spec:
  podSelector: {matchLabels: {app: db}}
  ingress: [{ports: [{port: 99}]}]
`

// TestRejected reports a policy that the aggregator rejects because of a limit, until it is
// accepted. Its pod stays isolated, and other policies are committed.
//
// Policy behaviour: 52.
func TestRejected(t *testing.T) {
	l := newLab(t)
	id := model.PolicyID{Tier: model.TierNetworkPolicy, Namespace: "shop", Name: "new"}
	entry := func() *localstate.PolicyState {
		for _, p := range l.state.State().Policies {
			if p.ID == id {
				return &p
			}
		}
		return &localstate.PolicyState{}
	}
	l.agg.Judge(l.rejects("shop/new"))
	l.write(t, "new.yaml", newPolicy)
	await(t, "the refusal", func() bool { return l.outcome(id).State == publish.Refused })
	if p := entry(); p.Outcome.State != publish.Refused || !strings.Contains(p.Outcome.Reason.Error(), "no room") || len(p.Problems) > 0 {
		t.Errorf("policy %+v", p)
	}
	if got := l.Status().Rejected; len(got) != 1 || got[0] != id {
		t.Errorf("rejected %v", got)
	}
	await(t, "the commit of the rest", func() bool {
		err := l.Degraded()
		return err != nil && strings.Contains(err.Error(), "1 refused, the first is NetworkPolicy shop/new: ")
	})
	await(t, "its Event and no other", func() bool {
		return l.events.text() == "networking.k8s.io/v1 NetworkPolicy/new PolicyRejected"
	})
	l.write(t, "bad.yaml", badPolicy)
	await(t, "another policy", func() bool { return l.has("egress", "10.244.1.5") })
	l.agg.Judge(nil)
	l.write(t, "new.yaml", strings.Replace(newPolicy, "99", "98", 1))
	await(t, "the policy", func() bool { return entry().Outcome.State == publish.InForce })
	if got := l.Status().Rejected; len(got) > 0 {
		t.Errorf("rejected %v", got)
	}
	(&observer{l.Frontend}).Sent(publish.Sent{Err: errors.New("away")})
}

// TestTooLarge leaves out a policy of more rules than one may have: its pod is isolated, other
// policies are committed, and its Event comes once, until it is smaller.
func TestTooLarge(t *testing.T) {
	l := newLab(t)
	id := model.PolicyID{Tier: model.TierNetworkPolicy, Namespace: "shop", Name: "new"}
	large := strings.Builder{}
	large.WriteString("apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: new, namespace: shop}\nspec:\n  podSelector: {matchLabels: {app: db}}\n  policyTypes: [Egress]\n  egress:\n")
	for i := range 20_001 {
		// Rules of one port each are elements of one set, and ranges of ports are not.
		fmt.Fprintf(&large, "  - {to: [{ipBlock: {cidr: 10.%d.%d.1/32}}], ports: [{port: %d, endPort: 65000}]}\n", i/256, i%256, 1+i)
	}
	l.write(t, "new.yaml", large.String())
	await(t, "the policy to be left out", func() bool { return l.outcome(id).State == publish.LeftOut })
	if got := l.outcome(id).Reason.Error(); !strings.Contains(got, "20001 rules that cannot be joined: at most 20000") {
		t.Errorf("reason %s", got)
	}
	await(t, "the isolation of its pod", func() bool { return l.has("egress", "10.244.1.5") })
	l.write(t, "bad.yaml", badPolicy)
	await(t, "the Event of another policy", func() bool { return strings.Contains(l.events.text(), "ClusterNetworkPolicy/bad InvalidPolicy") })
	if got := strings.Count(l.events.text(), "NetworkPolicy/new PolicyTooLarge"); got != 1 {
		t.Errorf("%d events of the policy: %s", got, l.events.text())
	}
	l.write(t, "new.yaml", newPolicy)
	await(t, "the smaller policy", func() bool { return l.outcome(id).State == publish.InForce })
	if got := l.Status().Rejected; len(got) > 0 {
		t.Errorf("rejected %v", got)
	}
}

const guardPolicy = `apiVersion: policy.networking.k8s.io/v1alpha2
kind: ClusterNetworkPolicy
metadata: {name: guard}
spec:
  tier: Admin
  priority: 5
  subject: {namespaces: {}}
  ingress: [{action: Deny, from: [{namespaces: {matchLabels: {kubernetes.io/metadata.name: shop}}}]}]
`

// TestRefusedClusterPolicies has the ClusterNetworkPolicies whose condition is false on this node,
// and why.
func TestRefusedClusterPolicies(t *testing.T) {
	l := newLab(t)
	id := model.PolicyID{Tier: model.TierAdmin, Name: "guard"}
	l.agg.Judge(l.rejects("admin-"))
	l.write(t, "guard.yaml", guardPolicy)
	await(t, "the refusal", func() bool { return l.outcome(id).State == publish.Refused })
	got := l.refusedClusterPolicies()
	if len(got) != 1 || !strings.HasPrefix(got["guard"], "what reaches it is dropped for the pods that it selects: ") || !strings.Contains(got["guard"], "no room") {
		t.Errorf("refused %v", got)
	}
	await(t, "its Event", func() bool {
		return strings.Contains(l.events.text(), "policy.networking.k8s.io/v1alpha2 ClusterNetworkPolicy/guard PolicyRejected")
	})
	l.agg.Judge(nil)
	l.write(t, "guard.yaml", strings.Replace(guardPolicy, "priority: 5", "priority: 6", 1))
	await(t, "the policy", func() bool { return l.outcome(id).State == publish.InForce })
	if got := l.refusedClusterPolicies(); len(got) > 0 {
		t.Errorf("refused %v, want none", got)
	}
}

// TestConfig rejects what is missing.
func TestConfig(t *testing.T) {
	_, err := New(Config{})
	if err == nil || !strings.Contains(err.Error(), "no source of objects") || !strings.Contains(err.Error(), "no node name") {
		t.Errorf("an empty configuration: %v", err)
	}
	if got := kindOf("networkpolicies") + " " + kindOf("pods"); got != "networkpolicy pod" {
		t.Errorf("kinds %s", got)
	}
}

// must ends the test with an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// put writes a file and its directories.
func put(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(text), 0o600))
}
