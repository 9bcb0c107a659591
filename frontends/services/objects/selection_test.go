package objects

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/weft-proxy/weft/frontends/testing/apitest"
)

// TestSelectors lets the server leave out what other proxies implement and what has
// no address; a label that is added makes a Service disappear, and one that is removed
// makes it appear.
//
// Behaviour: 102, 103, 104.
func TestSelectors(t *testing.T) {
	api := apitest.New(t)
	mine, foreign := kubeService("mine", "10.96.0.1"), kubeService("foreign", "10.96.0.2")
	foreign.Labels = map[string]string{proxyNameLabel: ""}
	headless := kubeSlice("headless-1", "10.1.0.9")
	headless.Labels = map[string]string{corev1.IsHeadlessService: ""}
	api.Set(mine, foreign, kubeService("headless", corev1.ClusterIPNone), kubeSlice("mine-1", "10.1.0.1"), headless)
	m := follow(t, api)
	m.awaitServices(t, "mine")
	if got := m.model.Stats(); got.SliceEvents != 1 || got.ServiceEvents != 1 {
		t.Errorf("events of what is not selected: %+v", got)
	}
	mine.Labels = map[string]string{proxyNameLabel: "other"}
	api.Set(mine)
	m.awaitServices(t)
	mine.Labels = nil
	api.Set(mine)
	m.awaitServices(t, "mine")
	for resource, want := range map[string]string{
		"services":       "!service.kubernetes.io/service-proxy-name spec.clusterIP!=None",
		"endpointslices": "!service.kubernetes.io/headless ",
		"nodes":          " metadata.name=n1",
		"servicecidrs":   " ",
	} {
		for _, q := range api.Requests(resource) {
			if got := q.Query.Get("labelSelector") + " " + q.Query.Get("fieldSelector"); got != want {
				t.Errorf("%s of %s are selected by %q, want %q", q.Verb, resource, got, want)
			}
		}
	}
}
