package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type scenario struct {
	// name is AREA/WHAT; -run 'TestScenarios/AREA/' runs an area.
	name string
	run  func(t *testing.T, e *env)
	// 0 means four minutes
	limit time.Duration
	// beside is set if it mostly waits, and runs beside later scenarios, but ends before the areas in
	// alone.
	beside bool
}

// In order. The scenarios share the world, so each repairs its damage before it returns.
var scenarios = []scenario{
	{name: "lab/everyone-reaches-every-pod", run: labReachable},
	{name: "api/selectors-leave-out-what-is-not-ours", run: apiSelectors},
	{name: "api/rights-are-those-of-the-manifests", run: apiRights},
	{name: "deploy/manifests-are-accepted", run: deployManifests},
	{name: "deploy/probes-answer", run: deployProbes},
	{name: "deploy/cluster-policy-status", run: clusterPolicyStatus, beside: true},
	{name: "service/clusterip", run: serviceClusterIP},
	{name: "service/clusterip-from-a-host", run: serviceFromHost},
	{name: "service/kubernetes", run: serviceKubernetes},
	{name: "service/several-slices", run: serviceSlices},
	{name: "service/endpoint-removed", run: serviceEndpointRemoved},
	{name: "service/udp-client-moves", run: serviceUDPMoves},
	{name: "service/deleted", run: serviceDeleted},
	{name: "service/headless-leaves-no-trace", run: serviceHeadless},
	{name: "service/foreign-proxied-leaves-no-trace", run: serviceForeign},
	{name: "lifecycle/clusterip-reused-at-once", run: lifecycleReuse},
	{name: "lifecycle/made-anew-elsewhere", run: lifecycleMoved},
	{name: "endpoints/rolling-update-under-load", run: rolloutUnderLoad, limit: 6 * time.Minute},
	{name: "publisher/policy-comes-and-goes", run: publisherPolicy},
	{name: "fault/ruleset-is-readable", run: faultReadable},
	{name: "fault/foreign-flush", run: faultFlush},
	{name: "fault/api-server-restarts", run: faultAPIServer},
	{name: "fault/weft-killed", run: faultKilled},
	{name: "fault/weft-killed-while-things-change", run: faultKilledChange},
	{name: "fault/weft-ended-again-and-again-under-load", run: faultChurn},
	{name: "fault/node-restarts", run: faultNodeRestart},
	{name: "fault/node-cut-off", run: faultPartition},
	{name: "fault/api-server-away", run: faultOutage, limit: *outage + outageSlack},
	{name: "cidr/added-and-removed", run: cidrAdded},
}

type env struct {
	*world
	ctx context.Context
	// namespace is the scenario's own in the API.
	namespace string
	notes     []string
}

// note logs a figure and puts it into the report.
func (e *env) note(t *testing.T, format string, args ...any) {
	t.Helper()
	line := fmt.Sprintf(format, args...)
	t.Log(line)
	e.notes = append(e.notes, line)
}

func TestScenarios(t *testing.T) {
	ctx := t.Context()
	start := time.Now()
	w := newWorld(t, ctx)
	t.Logf("control plane, nodes and weft started in %s", time.Since(start).Round(time.Millisecond))
	results := make([]result, len(scenarios))
	var others sync.WaitGroup
	defer others.Wait()
	for i, s := range scenarios {
		if area, _, _ := strings.Cut(s.name, "/"); slices.Contains(alone, area) {
			others.Wait()
		}
		e := &env{world: w, namespace: fmt.Sprintf("e2e-%d", i)}
		if s.beside {
			others.Go(func() { results[i] = e.run(t, s) })
		} else {
			results[i] = e.run(t, s)
		}
	}
	others.Wait()
	report := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(report, "SCENARIO\tRESULT\tDURATION")
	for i, s := range scenarios {
		if !results[i].ran {
			continue // left out by -run
		}
		fmt.Fprintf(report, "%s\t%s\t%.2fs\n", s.name, verdict(results[i].passed), results[i].took.Seconds())
		for _, n := range results[i].notes {
			fmt.Fprintf(report, "  %s\n", n)
		}
	}
	fmt.Fprintf(report, "all, with start\t%s\t%.2fs\n", verdict(!t.Failed()), time.Since(start).Seconds())
	report.Flush()
}

// Scenarios of these areas compare whole rulesets, or end programs and cut nodes off.
var alone = []string{"publisher", "fault"}

type result struct {
	ran, passed bool
	took        time.Duration
	notes       []string
}

func verdict(passed bool) string {
	if passed {
		return "PASS"
	}
	return "FAIL"
}

func (e *env) run(t *testing.T, s scenario) result {
	var r result
	begin := time.Now()
	r.passed = t.Run(s.name, func(t *testing.T) {
		r.ran = true
		e.play(t, s)
	})
	r.took, r.notes = time.Since(begin), e.notes
	return r
}

// play runs one scenario in a namespace that it empties afterwards.
func (e *env) play(t *testing.T, s scenario) {
	ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(s.limit, 10*time.Minute))
	defer cancel()
	e.ctx = ctx
	c := e.cluster.Client().CoreV1()
	if _, err := c.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create namespace: %v", err)
	}
	// Pods need an account; its controller does not run here.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: e.namespace}}
	if _, err := c.ServiceAccounts(e.namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create service account: %v", err)
	}
	defer func() {
		for _, d := range e.daemons {
			if err := d.err(); err != nil {
				t.Error(err)
			}
			if t.Failed() {
				t.Logf("logs of %s:\n%s", d.node.Name(), d.tails(15))
			}
		}
		if err := e.clear(); err != nil {
			t.Error(err)
		}
	}()
	s.run(t, e)
}

// clear keeps the namespace: its deletion would never finish here.
func (e *env) clear() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), 3*time.Minute)
	defer cancel()
	c := e.cluster.Client()
	all := metav1.ListOptions{}
	services, err := c.CoreV1().Services(e.namespace).List(ctx, all)
	if err != nil {
		return fmt.Errorf("list services of %s: %w", e.namespace, err)
	}
	for _, s := range services.Items {
		if err := c.CoreV1().Services(e.namespace).Delete(ctx, s.Name, metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("delete service %s/%s: %w", e.namespace, s.Name, err)
		}
	}
	now := int64(0)
	if err := c.CoreV1().Pods(e.namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, all); err != nil {
		return fmt.Errorf("delete pods of %s: %w", e.namespace, err)
	}
	if err := c.DiscoveryV1().EndpointSlices(e.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all); err != nil {
		return fmt.Errorf("delete slices of %s: %w", e.namespace, err)
	}
	return nil
}

// TestScenarioNames keeps the names fit for -run.
func TestScenarioNames(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range scenarios {
		area, what, ok := strings.Cut(s.name, "/")
		if !ok || area == "" || what == "" || strings.ContainsAny(s.name, " _") || seen[s.name] {
			t.Errorf("scenario %q: want a unique name of the form area/what-happens", s.name)
		}
		seen[s.name] = true
	}
}
