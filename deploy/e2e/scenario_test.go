package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// scenario is one story: what is done to the cluster, and what is seen in the network.
type scenario struct {
	// name is AREA/WHAT; -run 'TestScenarios/AREA/' runs an area.
	name string
	run  func(t *testing.T, e *env)
}

// The scenarios in the order in which they run. They share the world, so one
// that breaks something on purpose mends it before it returns.
var scenarios = []scenario{
	{"lab/everyone-reaches-every-pod", labReachable},
	{"api/selectors-leave-out-what-is-not-ours", apiSelectors},
	{"api/rights-are-those-of-the-manifests", apiRights},
	{"deploy/manifests-are-accepted", deployManifests},
	{"deploy/probes-answer", deployProbes},
	{"service/clusterip", serviceClusterIP},
	{"service/clusterip-ipv6", serviceClusterIPv6},
	{"service/clusterip-from-a-host", serviceFromHost},
	{"service/nodeport", serviceNodePort},
	{"service/kubernetes", serviceKubernetes},
	{"service/several-slices", serviceSlices},
	{"service/hairpin", serviceHairpin},
	{"service/endpoint-removed", serviceEndpointRemoved},
	{"service/udp-client-moves", serviceUDPMoves},
	{"service/no-endpoints", serviceNoEndpoints},
	{"service/deleted", serviceDeleted},
	{"service/headless-leaves-no-trace", serviceHeadless},
	{"service/foreign-proxied-leaves-no-trace", serviceForeign},
	{"publisher/policy-comes-and-goes", publisherPolicy},
	{"fault/ruleset-is-readable", faultReadable},
	{"fault/foreign-flush", faultFlush},
	{"fault/api-server-restarts", faultAPIServer},
	{"fault/weft-killed", faultKilled},
	{"fault/weft-killed-while-things-change", faultKilledChange},
}

// env is what a scenario gets.
type env struct {
	*world
	ctx context.Context
	// namespace is the scenario's own in the API.
	namespace string
}

func TestScenarios(t *testing.T) {
	ctx := t.Context()
	start := time.Now()
	w := newWorld(t, ctx)
	t.Logf("control plane, nodes and weft started in %s", time.Since(start).Round(time.Millisecond))
	report := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(report, "SCENARIO\tRESULT\tDURATION")
	for i, s := range scenarios {
		begin, ran := time.Now(), false
		ok := t.Run(s.name, func(t *testing.T) {
			ran = true
			w.play(t, fmt.Sprintf("e2e-%d", i), s)
		})
		if ran {
			fmt.Fprintf(report, "%s\t%s\t%.2fs\n", s.name, map[bool]string{true: "PASS", false: "FAIL"}[ok], time.Since(begin).Seconds())
		}
	}
	fmt.Fprintf(report, "all, with start\t%s\t%.2fs\n", map[bool]string{true: "PASS", false: "FAIL"}[!t.Failed()], time.Since(start).Seconds())
	report.Flush()
}

// play runs one scenario in a namespace that it empties afterwards.
func (w *world) play(t *testing.T, namespace string, s scenario) {
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	e := &env{world: w, ctx: ctx, namespace: namespace}
	api := w.cluster.Client().CoreV1().Namespaces()
	if _, err := api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create namespace: %v", err)
	}
	defer func() {
		for _, d := range w.daemons {
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

// clear deletes what the scenario wrote. The namespace itself stays: nothing
// here finishes its deletion.
func (e *env) clear() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), 10*time.Second)
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
