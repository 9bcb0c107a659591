package source

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weft-proxy/weft/frontends/testing/apitest"
)

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

func kubeNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}}}
}

func kubeCIDR(name string, ranges ...string) *networkingv1.ServiceCIDR {
	return &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: ranges}}
}

// kubeOf returns a source that follows an API server as node n1, without a
// limit of requests.
func kubeOf(t testing.TB, api *apitest.Server, cfg KubeConfig) *Kube {
	t.Helper()
	if cfg.Server == "" {
		cfg.Server = api.URL()
	}
	cfg.QPS = -1
	k, err := NewKube(cfg)
	must(t, err)
	k.retryFirst = 50 * time.Millisecond
	return k
}

// TestKubeFollowsObjects follows changes of every kind, in whatever order they
// come.
//
// Behaviour: 16, 17, 70.
func TestKubeFollowsObjects(t *testing.T) {
	for _, accept := range []string{"", "application/json"} {
		t.Run("accept "+accept, func(t *testing.T) {
			api := apitest.New(t)
			api.Set(kubeService("a", "10.96.0.1"), kubeSlice("a-1", "10.1.0.1"), kubeNode("n1"), kubeNode("n2"), kubeCIDR("kubernetes", "10.96.0.0/16", "fd00:96::/112"))
			r := follow(t, kubeOf(t, api, KubeConfig{AcceptContentTypes: accept}))
			r.await(t, "Service default/a=10.96.0.1", "EndpointSlice default/a-1=10.1.0.1", "Node n1=1", "ServiceCIDR kubernetes=10.96.0.0/16,fd00:96::/112")

			api.Set(kubeSlice("b-1", "10.1.0.3"), kubeSlice("a-1", "10.1.0.2"), kubeService("b", "10.96.0.2"), kubeCIDR("more", "10.97.0.0/16"))
			r.await(t, "Service default/a=10.96.0.1", "Service default/b=10.96.0.2", "EndpointSlice default/a-1=10.1.0.2", "EndpointSlice default/b-1=10.1.0.3",
				"Node n1=1", "ServiceCIDR kubernetes=10.96.0.0/16,fd00:96::/112", "ServiceCIDR more=10.97.0.0/16")
			api.Delete(kubeService("a", ""), kubeSlice("a-1"), kubeNode("n1"), kubeCIDR("kubernetes"))
			r.await(t, "Service default/b=10.96.0.2", "EndpointSlice default/b-1=10.1.0.3", "ServiceCIDR more=10.97.0.0/16")
		})
	}
}

// TestKubeStreams uses streamed lists where the server has them, and plain ones
// where it has not.
func TestKubeStreams(t *testing.T) {
	for _, has := range []bool{true, false} {
		api := apitest.New(t)
		api.Set(kubeService("a", "10.96.0.1"))
		if !has {
			api.Fault(func(q apitest.Request) apitest.Fault {
				if q.Verb == "stream" {
					return apitest.Fault{Status: http.StatusUnprocessableEntity}
				}
				return apitest.Fault{}
			})
		}
		r := follow(t, kubeOf(t, api, KubeConfig{}))
		r.await(t, "Service default/a=10.96.0.1")
		want := "stream"
		if !has {
			want = "stream list"
		}
		var got []string
		for _, q := range api.Requests("services") {
			if q.Verb != "watch" {
				got = append(got, q.Verb)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("server that streams %v: asked for %v, want %s", has, got, want)
		}
		// Both go on with a watch.
		api.Set(kubeService("b", "10.96.0.2"))
		r.await(t, "Service default/a=10.96.0.1", "Service default/b=10.96.0.2")
	}
}

// TestKubeRequests says who asks, for which type, and pages nothing that the
// server has in its cache.
//
// Behaviour: 150.
func TestKubeRequests(t *testing.T) {
	for _, tt := range []struct {
		cfg    KubeConfig
		accept string
		agent  string
	}{
		{KubeConfig{}, "application/vnd.kubernetes.protobuf,application/json", "weft"},
		{KubeConfig{ContentType: "application/json", UserAgent: "weft/1"}, "application/json", "weft/1"},
		{KubeConfig{AcceptContentTypes: "application/json"}, "application/json", "weft"},
	} {
		api := apitest.New(t)
		r := follow(t, kubeOf(t, api, tt.cfg))
		r.await(t)
		for _, q := range api.Requests("services") {
			// client-go adds ";stream=watch" to the types of a watch, in front.
			if got := strings.ReplaceAll(q.Header.Get("Accept"), ";stream=watch", ""); !strings.HasSuffix(got, tt.accept) || q.Header.Get("User-Agent") != tt.agent {
				t.Errorf("%s accepts %q as %q, want %q as %q", q.Verb, q.Header.Get("Accept"), q.Header.Get("User-Agent"), tt.accept, tt.agent)
			}
		}
	}
}
