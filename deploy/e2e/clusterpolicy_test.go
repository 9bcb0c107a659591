package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/weft-proxy/weft/deploy/e2e/cluster"
	"github.com/weft-proxy/weft/deploy/e2e/conformance/specs"
)

const clusterPolicy = `
apiVersion: policy.networking.k8s.io/v1alpha2
kind: ClusterNetworkPolicy
metadata: {name: no-metadata}
spec:
  tier: Admin
  priority: 1
  subject: {namespaces: {matchExpressions: [{key: team, operator: %s, values: [x]}]}}
  egress:
    - name: metadata
      action: Deny
      to: [{networks: [169.254.169.254/32]}]
`

// clusterPolicyStatus: with the rights of the manifests, weft writes the condition of a
// ClusterNetworkPolicy once, and again when the policy changes.
func clusterPolicyStatus(t *testing.T, e *env) {
	file, err := specs.PolicyDefinition(e.ctx)
	if err != nil {
		t.Fatal(err)
	}
	definition, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := cluster.Decode(definition)
	if err != nil {
		t.Fatal(err)
	}
	rights, err := manifests("hardened/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := e.cluster.Apply(e.ctx, false, append(objects, rights...)...); err != nil {
		t.Fatal(err)
	}
	put := func(operator string) {
		t.Helper()
		policy, err := cluster.Decode(fmt.Appendf(nil, clusterPolicy, operator))
		if err != nil {
			t.Fatal(err)
		}
		within(t, e.ctx, 3*time.Minute, "the API server has ClusterNetworkPolicies", func() error { return e.cluster.Apply(e.ctx, false, policy...) })
	}
	put("In")
	for i, n := range e.lab.Nodes {
		name := fmt.Sprintf("%s-status", n.Name())
		p, err := n.Start(name, filepath.Join(logDir, name+".log"), nil, binary("weft"), "policy", "--cluster-policy-status",
			"--kubeconfig", filepath.Join(runDir, "weft.kubeconfig"), "--hostname-override", n.Name(), "--socket", e.daemons[i].socket,
			"--metrics-bind-address", "", "--healthz-bind-address", "")
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := p.Stop(patience); err != nil {
				t.Error(err)
			}
		}()
	}
	d, err := dynamic.NewForConfig(e.cluster.Admin())
	if err != nil {
		t.Fatal(err)
	}
	policies := d.Resource(schema.GroupVersionResource{Group: "policy.networking.k8s.io", Version: "v1alpha2", Resource: "clusternetworkpolicies"})
	await := func(want string) (version string) {
		t.Helper()
		took := within(t, e.ctx, 3*time.Minute, "the condition is "+want, func() error {
			o, err := policies.Get(e.ctx, "no-metadata", metav1.GetOptions{})
			if err != nil {
				return err
			}
			version = o.GetResourceVersion()
			if got := conditionOf(o); !strings.HasPrefix(got, want) {
				return fmt.Errorf("it is %q", got)
			}
			return nil
		})
		t.Logf("condition %s after %s", want, took.Round(time.Millisecond))
		return version
	}
	await("Accepted=True Accepted 1")
	put("Like")
	version := await("Accepted=False Invalid 2 The policy is not in force: spec.subject")
	// Slower nodes see that it is written.
	select {
	case <-time.After(11 * time.Second):
	case <-e.ctx.Done():
	}
	if again := await("Accepted=False Invalid 2"); again != version {
		t.Errorf("the condition was written again: version %s, before %s", again, version)
	}
	put("In")
	await("Accepted=True Accepted 3")
	if err := policies.Delete(e.ctx, "no-metadata", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

func conditionOf(o *unstructured.Unstructured) string {
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	var out []string
	for _, c := range all {
		if c, ok := c.(map[string]any); ok {
			out = append(out, fmt.Sprintf("%v=%v %v %v %v", c["type"], c["status"], c["reason"], c["observedGeneration"], c["message"]))
		}
	}
	return strings.Join(out, ", ")
}
