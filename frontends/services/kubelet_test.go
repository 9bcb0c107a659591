package services

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/weft-proxy/weft/frontends/services/localstate"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

// kubeletServer has no pods at first, and sends the events of a test.
type kubeletServer struct {
	podsv1alpha1.UnimplementedPodsServer
	events chan *podsv1alpha1.WatchPodsEvent
}

func (k *kubeletServer) WatchPods(_ *podsv1alpha1.WatchPodsRequest, stream podsv1alpha1.Pods_WatchPodsServer) error {
	err := stream.Send(&podsv1alpha1.WatchPodsEvent{Type: podsv1alpha1.EventType_INITIAL_SYNC_COMPLETE})
	for err == nil {
		select {
		case <-stream.Context().Done():
			return nil
		case e := <-k.events:
			err = stream.Send(e)
		}
	}
	return err
}

// startKubelet returns the socket of a kubelet, and a function that reports a pod of namespace default.
func startKubelet(t *testing.T) (socket string, report func(name string, ready corev1.ConditionStatus)) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "pods.sock")
	l, err := net.Listen("unix", socket)
	must(t, err)
	k, server := &kubeletServer{events: make(chan *podsv1alpha1.WatchPodsEvent, 10)}, grpc.NewServer()
	podsv1alpha1.RegisterPodsServer(server, k)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return socket, func(name string, ready corev1.ConditionStatus) {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "1"}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
		b, err := p.Marshal()
		must(t, err)
		k.events <- &podsv1alpha1.WatchPodsEvent{Type: podsv1alpha1.EventType_MODIFIED, Pod: b}
	}
}

// TestKubelet has a pod that fails at the kubelet, and an API that does not say so: the endpoint and the answer
// to load balancers go, and metrics, condition and tables say why. They come back with the pod. Without the
// socket there is neither a metric nor a condition.
//
// Behaviour: 171, 175, 177.
func TestKubelet(t *testing.T) {
	socket, report := startKubelet(t)
	fake, network, reg := newFake(t), ports{t.TempDir()}, prometheus.NewPedanticRegistry()
	slice := setSlice("web", ipv4, "10.244.0.1*", "10.244.0.2")
	slice.Endpoints[0].TargetRef = &corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "web-1", UID: "1"}
	src := newScript(balanced("web", 32000, corev1.ServiceExternalTrafficPolicyLocal, "10.96.0.1"), slice)
	f, _ := run(t, Config{Source: src, Socket: fake.Socket, Network: network, Registerer: reg, PodsSocket: socket})
	const address = "0.0.0.0:32000"
	await(t, "the first commit", func() bool { return network.ask(address) == "200 1" })
	await(t, "the kubelet", func() bool { return f.Kubelet()() == nil })
	metrics := func(heldOut string) {
		t.Helper()
		if err := testutil.GatherAndCompare(reg, strings.NewReader(`
			# HELP weft_services_held_out_endpoints Endpoints of EndpointSlices that are ready or serving there, and not at the kubelet.
			# TYPE weft_services_held_out_endpoints gauge
			weft_services_held_out_endpoints `+heldOut+`
			# HELP weft_services_kubelet_connected 1 while the kubelet's Pods API reports the readiness of this node's pods, 0 while the API server alone does.
			# TYPE weft_services_kubelet_connected gauge
			weft_services_kubelet_connected 1
		`), metricHeldOut, metricKubelet); err != nil {
			t.Error(err)
		}
	}
	why := func() string {
		for _, table := range f.Tables() {
			if table.Name != localstate.TableEndpoints {
				continue
			}
			rows, err := table.Rows(map[string]string{localstate.ArgService: "default/web"})
			must(t, err)
			for row := range rows {
				if c := row.(*model.Candidate); c.Local { //nolint:forcetypeassert // a row of this table
					return c.Why(true)
				}
			}
		}
		return "no local endpoint"
	}
	metrics("0")
	for range 2 {
		report("web-1", corev1.ConditionFalse)
		await(t, "no local endpoint", func() bool { return network.ask(address) == "503 0" })
		publishtest.Equal(t, "why", why(), "the kubelet says that its pod is not ready; the API does not yet")
		metrics("1")
		report("web-1", corev1.ConditionTrue)
		await(t, "the local endpoint", func() bool { return network.ask(address) == "200 1" })
		publishtest.Equal(t, "why", why(), "")
		metrics("0")
	}
	updates := fake.count()
	report("web-1", corev1.ConditionTrue)
	report("other", corev1.ConditionFalse)
	await(t, "the other pod", func() bool { return testutil.ToFloat64(f.metrics.Events.WithLabelValues(podEvents)) == 6 })
	publishtest.Equal(t, "updates", fake.count(), updates)
	alone, _ := run(t, Config{Source: newScript(many(1)...), Socket: newFake(t).Socket, Registerer: prometheus.NewPedanticRegistry()})
	if alone.Kubelet() != nil {
		t.Error("a frontend without a kubelet's socket has its condition")
	}
}

// TestNoKubelet: the condition says why the kubelet's word does not count.
//
// Behaviour: 174, 177.
func TestNoKubelet(t *testing.T) {
	f, _ := run(t, Config{Source: newScript(), Socket: newFake(t).Socket, PodsSocket: filepath.Join(t.TempDir(), "none.sock")})
	await(t, "the reason", func() bool {
		err := f.Kubelet()()
		return err != nil && strings.Contains(err.Error(), "no such file or directory")
	})
}
