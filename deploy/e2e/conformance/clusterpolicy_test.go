package conformance

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/conformance/report"
	"github.com/weft-proxy/weft/deploy/e2e/conformance/specs"
)

// clusterPolicies is the focus that selects only the suite of ClusterNetworkPolicy.
const clusterPolicies = "ClusterNetworkPolicy"

// wantClusterPolicies reports whether the suite of ClusterNetworkPolicy runs: with all specs.
func wantClusterPolicies(proxy string) bool {
	return proxy == weft && (*focusFlag == clusterPolicies || *focusFlag == "" && !*shortFlag && !*chaosFlag)
}

// defineClusterPolicies waits until the API server serves ClusterNetworkPolicy.
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

func (w *world) runClusterPolicies(t *testing.T, ctx context.Context, dir string) {
	start := time.Now()
	err := specs.RunPolicies(ctx, specs.Policies{
		Program: program("clusterpolicy"), Kubeconfig: w.Kubeconfig, Output: report.PolicyOutput(dir),
	})
	t.Logf("the tests of %s took %s", clusterPolicies, time.Since(start).Round(time.Second))
	if err != nil {
		t.Error(strings.TrimSpace(err.Error()), ": see", report.PolicyOutput(dir))
	}
}
