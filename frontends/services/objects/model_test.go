package objects

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/source"
	"github.com/weft-proxy/weft/frontends/testing/apitest"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

var must = publishtest.Must

// modelled is a user of a source that keeps a model, refreshed after every batch.
type modelled struct {
	mu     sync.Mutex
	model  *model.Model
	synced bool
}

func (m *modelled) deliver(events []source.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range events {
		e.Apply()
	}
	m.model.Refresh()
}

func (m *modelled) setSynced() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.synced = true
}

// awaitServices waits until everything is known and the Services are these.
func (m *modelled) awaitServices(t *testing.T, want ...string) {
	t.Helper()
	publishtest.Await(t, fmt.Sprintf("Services %q", want), func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		var got []string
		for _, s := range m.model.Snapshot().Services {
			got = append(got, s.Name.Name)
		}
		return m.synced && slices.Equal(got, want)
	})
}

// follow has a model of node n1 follow an API server until the test ends.
func follow(t *testing.T, api *apitest.Server) *modelled {
	t.Helper()
	k, err := source.NewKube(source.KubeConfig{Server: api.URL(), QPS: -1})
	must(t, err)
	m := &modelled{model: model.New(model.Config{NodeName: "n1"})}
	must(t, k.Subscribe(source.Subscription{User: "test", Kinds: Kinds("n1", m.model, false), Deliver: m.deliver, Synced: m.setSynced}))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return m
}

func kubeService(name, ip string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.ServiceSpec{ClusterIP: ip, Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

func kubeSlice(name string, addrs ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, AddressType: discoveryv1.AddressTypeIPv4}
	for _, a := range addrs {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}})
	}
	return s
}

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
			publishtest.Equal(t, fmt.Sprintf("selectors of %s of %s", q.Verb, resource), q.Query.Get("labelSelector")+" "+q.Query.Get("fieldSelector"), want)
		}
	}
}

// TestRightsAreEnough compares the requests to the API with the rights in the
// manifest, which are limited to reading and to events.
func TestRightsAreEnough(t *testing.T) {
	content, err := os.ReadFile("../../../deploy/kubernetes/split/rbac.yaml")
	must(t, err)
	rights := make(map[string][]string)
	for _, doc := range strings.Split(string(content), "\n---\n") {
		var role rbacv1.ClusterRole
		must(t, yaml.Unmarshal([]byte(doc), &role))
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				rights[resource] = append(rights[resource], rule.Verbs...)
			}
		}
	}
	for resource, verbs := range rights {
		for _, v := range verbs {
			read := v == "get" || v == "list" || v == "watch"
			if write := resource == "events" && (v == "create" || v == "patch"); !read && !write {
				t.Errorf("the manifest gives %s of %s", v, resource)
			}
		}
	}
	api := apitest.New(t)
	// A server without streamed lists is asked for both.
	api.Fault(func(q apitest.Request) apitest.Fault {
		if q.Verb == "stream" {
			return apitest.Fault{Status: http.StatusUnprocessableEntity}
		}
		return apitest.Fault{}
	})
	follow(t, api).awaitServices(t)
	for _, resource := range []string{"services", "endpointslices", "nodes", "servicecidrs"} {
		for _, q := range api.Requests(resource) {
			verb := q.Verb
			if verb == "stream" {
				verb = "watch"
			}
			if !slices.Contains(rights[resource], verb) {
				t.Errorf("%s of %s is not among the rights %v", verb, resource, rights[resource])
			}
		}
	}
}
