package e2e

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// apiRights: weft's service account has exactly the needed rights.
func apiRights(t *testing.T, e *env) {
	token, err := e.cluster.Token(e.ctx, "kube-system", "weft")
	if err != nil {
		t.Fatal(err)
	}
	c, err := kubernetes.NewForConfig(&rest.Config{
		Host: e.cluster.URL(), BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: e.cluster.CA()},
	})
	if err != nil {
		t.Fatal(err)
	}
	one := metav1.ListOptions{Limit: 1}
	for _, r := range []struct {
		what    string
		allowed bool
		do      func() error
	}{
		{"list services", true, func() error { _, err := c.CoreV1().Services("").List(e.ctx, one); return err }},
		{"list slices", true, func() error { _, err := c.DiscoveryV1().EndpointSlices("").List(e.ctx, one); return err }},
		{"list nodes", true, func() error { _, err := c.CoreV1().Nodes().List(e.ctx, one); return err }},
		{"list secrets", false, func() error { _, err := c.CoreV1().Secrets("").List(e.ctx, one); return err }},
		{"list pods", false, func() error { _, err := c.CoreV1().Pods("").List(e.ctx, one); return err }},
		{"delete services", false, func() error {
			return c.CoreV1().Services("default").Delete(e.ctx, "kubernetes", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		}},
	} {
		err := r.do()
		if r.allowed && err != nil || !r.allowed && !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, want allowed: %v", r.what, err, r.allowed)
		}
	}
}
