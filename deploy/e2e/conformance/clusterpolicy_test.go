package conformance

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/conformance/report"
	"github.com/weft-proxy/weft/deploy/e2e/conformance/specs"
)

// clusterPolicies is the focus that selects the suite of ClusterNetworkPolicy alone.
const clusterPolicies = "ClusterNetworkPolicy"

// wantClusterPolicies reports whether the suite of ClusterNetworkPolicy is part of a run: it is one of all specs.
func wantClusterPolicies(proxy string) bool {
	return proxy == weft && (*focusFlag == clusterPolicies || *focusFlag == "" && !*shortFlag && !*chaosFlag)
}

// defineClusterPolicies gives the API server the definition of ClusterNetworkPolicy, and waits until it
// answers for it.
func (w *world) defineClusterPolicies(ctx context.Context) error {
	file, err := specs.PolicyDefinition(ctx)
	if err != nil {
		return err
	}
	if err := w.kubectl(ctx, "apply", "--server-side", "-f", file); err != nil {
		return err
	}
	return w.kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", "crd/clusternetworkpolicies.policy.networking.k8s.io")
}

// runClusterPolicies runs the suite of ClusterNetworkPolicy.
func (w *world) runClusterPolicies(t *testing.T, ctx context.Context, dir string) {
	start := time.Now()
	err := specs.RunPolicies(ctx, specs.Policies{
		Program: program("clusterpolicy"), Kubeconfig: w.kubeconfig(), Output: report.PolicyOutput(dir),
	})
	t.Logf("the tests of %s took %s", clusterPolicies, time.Since(start).Round(time.Second))
	if err != nil {
		t.Error(strings.TrimSpace(err.Error()), ": see", report.PolicyOutput(dir))
	}
}
