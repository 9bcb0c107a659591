package source

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func kubeService(name, ip string) *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.ServiceSpec{ClusterIP: ip, Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

func kubeSlice(name, addr string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: name},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{addr}}},
	}
}

func TestKubeFollowsObjects(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}}}
	client := fake.NewClientset(kubeService("a", "10.96.0.1"), kubeSlice("a-1", "10.1.0.1"), node)
	k, err := NewKube(KubeConfig{Client: client, NodeName: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	r := newRecorder()
	follow(t, k, r)
	r.await(t, "Service default/a=10.96.0.1", "EndpointSlice default/a-1=10.1.0.1", "Node n1=1")

	ctx := t.Context()
	if _, err := client.CoreV1().Services("default").Create(ctx, kubeService("b", "10.96.0.2"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.DiscoveryV1().EndpointSlices("default").Update(ctx, kubeSlice("a-1", "10.1.0.2"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.await(t, "Service default/a=10.96.0.1", "Service default/b=10.96.0.2", "EndpointSlice default/a-1=10.1.0.2", "Node n1=1")
	if err := client.CoreV1().Services("default").Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := client.DiscoveryV1().EndpointSlices("default").Delete(ctx, "a-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := client.CoreV1().Nodes().Delete(ctx, "n1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.await(t, "Service default/b=10.96.0.2")
}

// apiServer answers lists with what it has, and watches with silence.
type apiServer struct {
	mu       sync.Mutex
	requests map[string]http.Header
	queries  map[string]string
	// hold delays the lists of a resource until it is closed.
	hold map[string]chan struct{}
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	w.Header().Set("Content-Type", "application/json")
	switch {
	case q.Has("sendInitialEvents"):
		// As an API server without streaming lists.
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status: "Failure", Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity})
		return
	case q.Has("watch"):
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return
	}
	s.mu.Lock()
	hold := s.hold[resource]
	s.requests[resource] = r.Header.Clone()
	s.queries[resource] = q.Get("labelSelector") + " " + q.Get("fieldSelector")
	s.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-r.Context().Done():
			return
		}
	}
	list := map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]string{"resourceVersion": "1"}, "items": []any{}}
	switch resource {
	case "services":
		list["kind"], list["items"] = "ServiceList", []any{kubeService("a", "10.96.0.1")}
	case "nodes":
		list["kind"] = "NodeList"
	case "endpointslices":
		list["kind"], list["apiVersion"] = "EndpointSliceList", "discovery.k8s.io/v1"
	}
	_ = json.NewEncoder(w).Encode(list)
}

func TestKubeRequests(t *testing.T) {
	held := make(chan struct{})
	api := &apiServer{requests: make(map[string]http.Header), queries: make(map[string]string),
		hold: map[string]chan struct{}{"endpointslices": held}}
	srv := httptest.NewServer(api)
	t.Cleanup(srv.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"" + srv.URL + "\"}}]\n" +
		"contexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	log, logger := newLog()
	k, err := NewKube(KubeConfig{Kubeconfig: kubeconfig, NodeName: "n1", Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	r := newRecorder()
	follow(t, k, r)
	log.await(t, "following the kubernetes API")
	// Services are there, slices are not: nothing is synced.
	for services := false; !services; {
		<-r.changed
		r.mu.Lock()
		services = r.objects["Service default/a"] != ""
		if r.synced > 0 {
			t.Error("synced before the EndpointSlices were listed")
		}
		r.mu.Unlock()
	}
	close(held)
	r.await(t, "Service default/a=10.96.0.1")
	api.mu.Lock()
	defer api.mu.Unlock()
	for resource, want := range map[string]string{
		"services":       "!service.kubernetes.io/service-proxy-name spec.clusterIP!=None",
		"endpointslices": "!service.kubernetes.io/headless ",
		"nodes":          " metadata.name=n1",
	} {
		if got := api.queries[resource]; got != want {
			t.Errorf("%s are selected by %q, want %q", resource, got, want)
		}
		if got := api.requests[resource].Get("Accept"); !strings.HasPrefix(got, "application/vnd.kubernetes.protobuf") {
			t.Errorf("%s are asked for as %q", resource, got)
		}
	}
}

func TestKubeconfigErrors(t *testing.T) {
	if _, err := NewKube(KubeConfig{Kubeconfig: "/nonexistent/kubeconfig", NodeName: "n1"}); err == nil || !strings.Contains(err.Error(), "/nonexistent/kubeconfig") {
		t.Errorf("missing kubeconfig: %v", err)
	}
	if _, err := NewKube(KubeConfig{Client: fake.NewClientset()}); err == nil {
		t.Error("no error without a node name")
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := NewKube(KubeConfig{NodeName: "n1"}); err == nil || !strings.Contains(err.Error(), "--kubeconfig") {
		t.Errorf("outside of a cluster: %v", err)
	}
}

func TestTrimKeepsWhatTheModelNeeds(t *testing.T) {
	hostname, zone := "h", "z"
	big := bytes.Repeat([]byte("x"), 1000)
	meta := metav1.ObjectMeta{
		Namespace: "default", Name: "a", Annotations: map[string]string{"big": string(big)},
		Labels:        map[string]string{"app": "a", proxyNameLabel: "p", discoveryv1.LabelServiceName: "a", corev1.LabelTopologyZone: "z"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
	}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: meta, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.1.0.1"}, Hostname: &hostname, Zone: &zone}}}
	svc := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: map[string]string{"a": "b"}, ClusterIP: "10.96.0.1"}}
	node := &corev1.Node{ObjectMeta: meta, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Address: "192.0.2.1"}},
		Images: []corev1.ContainerImage{{SizeBytes: 1}}}}
	for _, o := range []metav1.Object{slice, svc, node} {
		got, err := trim(o)
		if err != nil || got != any(o) {
			t.Fatal("trim made another object")
		}
		if o.GetManagedFields() != nil || o.GetAnnotations() != nil || o.GetName() != "a" || o.GetLabels()["app"] != "" {
			t.Errorf("%T keeps %+v", o, o)
		}
	}
	if slice.Labels[discoveryv1.LabelServiceName] != "a" || slice.Endpoints[0].Zone == nil || slice.Endpoints[0].Hostname != nil {
		t.Errorf("slice %+v", slice)
	}
	if svc.Labels[proxyNameLabel] != "p" || svc.Spec.ClusterIP == "" || svc.Spec.Selector != nil {
		t.Errorf("service %+v", svc)
	}
	if len(node.Status.Addresses) != 1 || node.Status.Images != nil || node.Labels[corev1.LabelTopologyZone] != "z" {
		t.Errorf("node %+v", node)
	}
	if got, err := trim("tombstone"); err != nil || got != "tombstone" {
		t.Error("trim touches what is no object")
	}
}
