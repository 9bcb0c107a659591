package source

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// keptOfPod are fields as a user of pods may want them.
var keptOfPod = []string{"metadata.labels", "metadata.creationTimestamp", "spec.hostNetwork", "spec.containers.ports", "status.podIPs", "status.phase"}

// largePod returns a pod as an API server has it.
func largePod() *corev1.Pod {
	p := &corev1.Pod{}
	p.Name, p.Namespace, p.UID, p.ResourceVersion = "web-0", "shop", types.UID("00000000-0000-4000-8000-000000000001"), "12345"
	p.CreationTimestamp = metav1.NewTime(time.Unix(1_700_000_000, 0))
	p.Labels = map[string]string{"app": "web", "pod-template-hash": "abcdef"}
	p.Annotations = map[string]string{"example.org/note": strings.Repeat("x", 300)}
	for i := range 4 {
		p.ManagedFields = append(p.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: fmt.Sprintf("manager-%d", i), Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:image":{},"f:env":{}}}}}`),
		})
	}
	for i := range 3 {
		c := corev1.Container{Name: fmt.Sprintf("c%d", i), Image: "registry.example/image:1", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: int32(8080 + i), Protocol: corev1.ProtocolTCP}}}
		for j := range 15 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", j), Value: "some value of it"})
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: fmt.Sprintf("volume-%d", j), MountPath: "/var/lib/something"})
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image, ContainerID: "containerd://0123456789abcdef0123456789abcdef"})
	}
	p.Spec.NodeName, p.Spec.HostNetwork = "node-1", true
	p.Status.Phase, p.Status.PodIP, p.Status.PodIPs = corev1.PodRunning, "10.0.0.1", []corev1.PodIP{{IP: "10.0.0.1"}, {IP: "fd00::1"}}
	for _, c := range []corev1.PodConditionType{corev1.PodReady, corev1.PodInitialized, corev1.PodScheduled} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: p.CreationTimestamp})
	}
	return p
}

// encode returns an object in protobuf, as the API server sends it.
func encode(t testing.TB, o runtime.Object) []byte {
	t.Helper()
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), protobufContent)
	b, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// decoders returns one that trims pods, and one that does not.
func decoders(t testing.TB) (trimming, whole runtime.Decoder) {
	t.Helper()
	fields, err := fieldsOnWire(reflect.TypeFor[*corev1.Pod](), keptOfPod)
	if err != nil {
		t.Fatal(err)
	}
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), protobufContent)
	all := scheme.Codecs.WithoutConversion()
	trims := trims{corev1.SchemeGroupVersion.WithKind("Pod"): fields}
	return trimmingSerializer{all, trims}.DecoderToVersion(info.Serializer, nil), all.DecoderToVersion(info.Serializer, nil)
}

// trimmed returns what is kept of a pod.
func trimmed(p *corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{TypeMeta: p.TypeMeta}
	out.Name, out.Namespace, out.UID, out.ResourceVersion = p.Name, p.Namespace, p.UID, p.ResourceVersion
	out.Labels, out.CreationTimestamp = p.Labels, p.CreationTimestamp
	out.Spec.HostNetwork = p.Spec.HostNetwork
	for _, c := range p.Spec.Containers {
		out.Spec.Containers = append(out.Spec.Containers, corev1.Container{Ports: c.Ports})
	}
	out.Status.PodIPs, out.Status.Phase = p.Status.PodIPs, p.Status.Phase
	return out
}

// TestTrim decodes what is kept of objects.
func TestTrim(t *testing.T) {
	large, small, service := largePod(), &corev1.Pod{}, &corev1.Service{}
	small.Name, small.Spec.NodeName = "small", "node-1"
	service.Name, service.Annotations = "other", large.Annotations
	service.Annotations["more"] = strings.Repeat("x", minTrimmed)
	mark := large.DeepCopy()
	mark.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "next"}, Items: []corev1.Pod{*large, *small}}
	keptList := &corev1.PodList{ListMeta: list.ListMeta, Items: []corev1.Pod{*trimmed(large), *trimmed(small)}}
	trimming, _ := decoders(t)
	for name, tt := range map[string]struct{ in, want runtime.Object }{
		"large": {large, trimmed(large)}, "small": {small, small}, "another type": {service, service}, "end of a list": {mark, mark}, "list": {list, keptList},
	} {
		got, _, err := trimming.Decode(encode(t, tt.in), nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if want := encode(t, tt.want); !bytes.Equal(encode(t, got), want) {
			t.Errorf("%s: got %+v\nwant %+v", name, got, tt.want)
		}
	}
}

// TestTrimFields has fields that do not exist, and fields of several users.
func TestTrimFields(t *testing.T) {
	pod := reflect.TypeFor[*corev1.Pod]()
	for _, path := range []string{"spec.container", "metadata.creationTimestamp.time", "", "spec.hostNetwork.x", "metadata.labels.app"} {
		if _, err := fieldsOnWire(pod, []string{path}); err == nil {
			t.Errorf("%q is a field", path)
		}
	}
	fields := func(paths ...string) wireFields {
		out, err := fieldsOnWire(pod, paths)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	gvk := corev1.SchemeGroupVersion.WithKind("Pod")
	for _, tt := range []struct{ users, want []wireFields }{
		{[]wireFields{fields("spec.nodeName"), fields("spec.hostNetwork", "status.phase")}, []wireFields{fields("spec.nodeName", "spec.hostNetwork", "status.phase")}},
		{[]wireFields{fields("spec.containers.ports"), fields("spec.containers")}, []wireFields{fields("spec.containers.name", "spec.containers", "spec.containers.ports")}},
		{[]wireFields{fields("spec.nodeName"), nil}, []wireFields{nil}},
		{[]wireFields{nil, fields("spec.nodeName")}, []wireFields{nil}},
	} {
		all := make(trims)
		for _, f := range tt.users {
			all.add(gvk, f)
		}
		if !reflect.DeepEqual(all[gvk], tt.want[0]) {
			t.Errorf("got %v, want %v", all[gvk], tt.want[0])
		}
	}
}

// FuzzTrim has objects that may be damaged. What is valid is decoded as what is kept of it.
func FuzzTrim(f *testing.F) {
	data := encode(f, largePod())
	f.Add(data)
	for _, n := range []int{5, 30, 31, 40, 200, len(data) / 2, len(data) - 1} {
		f.Add(data[:n])
		f.Add(append(bytes.Clone(data[:n]), bytes.Repeat([]byte{0xff}, minTrimmed)...))
	}
	trimming, whole := decoders(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		want, _, err := whole.Decode(data, nil, nil)
		got, _, err2 := trimming.Decode(data, nil, nil)
		if err != nil {
			return
		}
		if err2 != nil {
			t.Fatalf("%x: %v", data, err2)
		}
		p, ok := want.(*corev1.Pod)
		q, _ := got.(*corev1.Pod)
		if ok && (p.Name != q.Name || p.ResourceVersion != q.ResourceVersion || !reflect.DeepEqual(p.Labels, q.Labels) || !reflect.DeepEqual(p.Status.PodIPs, q.Status.PodIPs)) {
			t.Fatalf("%x: got %+v, want %+v", data, q, p)
		}
	})
}

// BenchmarkDecodePod decodes a pod as an API server has it.
func BenchmarkDecodePod(b *testing.B) {
	data := encode(b, largePod())
	trimming, whole := decoders(b)
	for name, d := range map[string]runtime.Decoder{"whole": whole, "trimmed": trimming} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if _, _, err := d.Decode(data, nil, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
