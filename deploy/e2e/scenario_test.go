package e2e

import (
	"cmp"
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type scenario struct {
	// name is AREA/WHAT; -run 'TestScenarios/AREA/' runs an area.
	name string
	run  func(t *testing.T, e *env)
	// 0 means ten minutes
	limit time.Duration
	// earlier is set if the scenario also runs with earlier API servers.
	earlier bool
}

// In order. The scenarios share the world, so each repairs its damage before it returns.
var scenarios = []scenario{
	{name: "api/rights-are-those-of-the-manifests", run: apiRights, earlier: true},
	{name: "deploy/manifests-are-accepted", run: deployManifests, earlier: true},
	{name: "deploy/cluster-policy-status", run: clusterPolicyStatus, earlier: true},
	{name: "service/clusterip-reused-at-once", run: serviceReplaced, earlier: true},
	{name: "publisher/policy-comes-and-goes", run: publisherPolicy, earlier: true},
	{name: "fault/foreign-flush", run: faultFlush},
	{name: "fault/weft-ended-again-and-again-under-load", run: faultChurn},
	{name: "fault/node-restarts", run: faultNodeRestart, earlier: true},
	{name: "fault/node-cut-off", run: faultPartition},
	{name: "fault/api-server-away", run: faultOutage, limit: *outage + outageSlack},
}

type env struct {
	*world
	ctx context.Context
	// namespace is the scenario's own in the API.
	namespace string
}

func TestScenarios(t *testing.T) { runScenarios(t, "", scenarios) }

// runScenarios runs scenarios against the kube-apiserver of a program, or against the current one.
func runScenarios(t *testing.T, apiServer string, list []scenario) {
	t.Helper()
	start := time.Now()
	w := newWorld(t, t.Context(), apiServer)
	t.Logf("control plane, nodes and weft started in %s", time.Since(start).Round(time.Millisecond))
	for i, s := range list {
		t.Run(s.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(s.limit, 10*time.Minute))
			defer cancel()
			e := &env{world: w, ctx: ctx, namespace: fmt.Sprintf("e2e-%d", i)}
			e.play(t, s)
		})
	}
}

// play runs one scenario in a namespace that it empties afterwards.
func (e *env) play(t *testing.T, s scenario) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.namespace}}
	if _, err := e.cluster.Client().CoreV1().Namespaces().Create(e.ctx, namespace, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create namespace: %v", err)
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
	if err := c.DiscoveryV1().EndpointSlices(e.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all); err != nil {
		return fmt.Errorf("delete slices of %s: %w", e.namespace, err)
	}
	return nil
}
