package objects

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/source"
	"github.com/weft-proxy/weft/frontends/testing/apitest"
)

// TestMessagesOfPods has pods that the model reads from the API's messages: it keeps the same of
// them as of objects.
func TestMessagesOfPods(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	port := func(name string, number int32, protocol corev1.Protocol) []corev1.ContainerPort {
		return []corev1.ContainerPort{{Name: name, ContainerPort: number, Protocol: protocol}}
	}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web", UID: "web-uid", CreationTimestamp: metav1.NewTime(time.Unix(1_700_000_000, 0)),
			Labels: map[string]string{"app": "web", "tier": "front"}, Annotations: map[string]string{"note": strings.Repeat("x", 4096)},
		},
		Spec: corev1.PodSpec{
			NodeName:   "n1",
			Containers: []corev1.Container{{Name: "main", Image: "i", Ports: port("http", 80, corev1.ProtocolTCP)}, {Ports: port("dns", 53, corev1.ProtocolUDP)}},
			InitContainers: []corev1.Container{
				{Name: "init", Ports: port("init", 81, corev1.ProtocolTCP)},
				{Name: "sidecar", RestartPolicy: &always, Ports: port("sidecar", 82, corev1.ProtocolSCTP)},
			},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}, {IP: "fd00::1"}, {IP: "lo"}}},
	}
	old := p.DeepCopy()
	old.Name, old.Status.PodIPs = "old", nil
	ended := p.DeepCopy()
	ended.Name, ended.Status.Phase = "ended", corev1.PodSucceeded
	host := p.DeepCopy()
	host.Name, host.Spec.HostNetwork = "host", true

	api := apitest.New(t)
	api.Set(p, old, ended, host)
	kube, err := source.NewKube(source.KubeConfig{Server: api.URL()})
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	synced := make(chan struct{})
	sub := source.Subscription{User: "test", Synced: func() { close(synced) }, Deliver: func(events []source.Event) {
		for _, e := range events {
			e.Apply()
		}
	}}
	for _, k := range Kinds("n1", model.New(model.Config{NodeName: "n1"})) {
		if pods, ok := k.(source.Kind[*corev1.Pod, *model.PodObject]); ok {
			pods.FieldSelector = ""
			pods.Set = func(name types.NamespacedName, o *model.PodObject) { got[name.Name] = fmt.Sprintf("%+v", *o) }
			pods.Decode = func(o *corev1.Pod) *model.PodObject {
				t.Errorf("an object is made for %s", o.Name)
				return model.ParsePod(o)
			}
			sub.Kinds = append(sub.Kinds, pods)
		}
	}
	if err := kube.Subscribe(sub); err != nil {
		t.Fatal(err)
	}
	run(t, kube)
	<-synced
	for _, o := range []*corev1.Pod{p, old, ended, host} {
		if want := fmt.Sprintf("%+v", *model.ParsePod(o)); got[o.Name] != want {
			t.Errorf("%s: got %s\nwant %s", o.Name, got[o.Name], want)
		}
	}
}
