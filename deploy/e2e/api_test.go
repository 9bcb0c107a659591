package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// The Service frontend's selectors: rule 104.
const (
	ownServices     = "!" + proxyNameLabel
	withClusterIP   = "spec.clusterIP!=" + headlessAddress
	ownSlices       = "!" + headlessLabel
	proxyNameLabel  = "service.kubernetes.io/service-proxy-name"
	headlessLabel   = corev1.IsHeadlessService
	headlessAddress = corev1.ClusterIPNone
)

// apiSelectors: the API server supports the selectors for lists and watches, and a later label ends a
// watched object.
//
// Behaviour: 104.
func apiSelectors(t *testing.T, e *env) {
	factory := informers.NewSharedInformerFactoryWithOptions(e.cluster.Client(), 0,
		informers.WithNamespace(e.namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector, o.FieldSelector = ownServices, withClusterIP }))
	lister := factory.Core().V1().Services().Lister()
	slicesFactory := informers.NewSharedInformerFactoryWithOptions(e.cluster.Client(), 0,
		informers.WithNamespace(e.namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = ownSlices }))
	sliceLister := slicesFactory.Discovery().V1().EndpointSlices().Lister()

	e.webService(t, "plain", nil)
	e.webService(t, "headless", func(s *corev1.Service) { s.Spec.ClusterIP = headlessAddress })
	e.webService(t, "foreign", func(s *corev1.Service) { s.Labels = map[string]string{proxyNameLabel: "other"} })
	factory.Start(e.ctx.Done())
	slicesFactory.Start(e.ctx.Done())
	factory.WaitForCacheSync(e.ctx.Done())
	slicesFactory.WaitForCacheSync(e.ctx.Done())

	names := func() []string {
		all, err := lister.List(labels.Everything())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range all {
			names = append(names, s.Name)
		}
		slices.Sort(names)
		return names
	}
	expect := func(want ...string) {
		t.Helper()
		within(t, e.ctx, 5*time.Second, fmt.Sprintf("the watch has %v", want), func() error {
			if got := names(); !slices.Equal(got, want) {
				return fmt.Errorf("it has %v", got)
			}
			return nil
		})
	}
	expect("plain")
	late := e.webService(t, "late", nil)
	expect("late", "plain")
	patch := []byte(`{"metadata":{"labels":{"` + proxyNameLabel + `":"other"}}}`)
	if _, err := e.cluster.Client().CoreV1().Services(e.namespace).Patch(e.ctx, "late", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("plain")

	own := late.slice(discoveryv1.AddressTypeIPv4, "own", e.web)
	marked := late.slice(discoveryv1.AddressTypeIPv4, "headless", e.web)
	marked.Labels[headlessLabel] = ""
	late.apply(t, marked)
	late.apply(t, own)
	within(t, e.ctx, 5*time.Second, "the watch has the one slice", func() error {
		all, err := sliceLister.List(labels.Everything())
		if err == nil && (len(all) != 1 || all[0].Name != own.Name) {
			err = fmt.Errorf("it has %d", len(all))
		}
		return err
	})
}

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
