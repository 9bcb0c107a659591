package source

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/weft-proxy/weft/frontends/source/wire"
)

// errNoSpec is the error of nodeOfPod.
var errNoSpec = errors.New("no spec")

// nodeOfPod reads spec.nodeName of a pod, as a user that keeps nothing else.
func nodeOfPod(message []byte) (node string, err error) {
	err = errNoSpec
	_ = wire.Fields(message, func(f wire.Field) error {
		if f.Number != 2 {
			return nil
		}
		err = f.Message(func(f wire.Field) error {
			if f.Number == 10 {
				return f.Text(&node)
			}
			return nil
		})
		return err
	})
	return node, err
}

// podKind is a kind of pods with Unmarshal.
func podKind() Kind[*corev1.Pod, string] {
	return Kind[*corev1.Pod, string]{
		Resource: corev1.SchemeGroupVersion.WithResource("pods"), Object: &corev1.Pod{}, Namespaced: true,
		Decode: func(p *corev1.Pod) string { return p.Spec.NodeName }, Unmarshal: nodeOfPod,
		Set: func(types.NamespacedName, string) {}, Delete: func(types.NamespacedName) {},
	}
}

// encode returns an object in protobuf, as the API server sends it.
func encode(t testing.TB, o runtime.Object) []byte {
	t.Helper()
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), protobufContent)
	b, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), o)
	must(t, err)
	return b
}

// decoders returns one for the users of kinds, and one that makes all objects.
func decoders(t testing.TB, kinds ...AnyKind) (reading, making runtime.Decoder) {
	t.Helper()
	m := make(messages)
	for _, k := range kinds {
		compiled, err := k.compile()
		must(t, err)
		m.add(compiled)
	}
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), protobufContent)
	all := scheme.Codecs.WithoutConversion()
	return messageSerializer{all, m}.DecoderToVersion(info.Serializer, nil), all.DecoderToVersion(info.Serializer, nil)
}

// examplePod returns a pod on a node.
func examplePod(name, node string) *corev1.Pod {
	p := &corev1.Pod{}
	p.Name, p.Namespace, p.UID, p.ResourceVersion = name, "shop", types.UID(name+"-uid"), "12345"
	p.Annotations = map[string]string{"example.org/note": strings.Repeat("x", 300)}
	p.Spec.NodeName = node
	p.Spec.Containers = []corev1.Container{{Name: "main", Image: "registry.example/image:1"}}
	return p
}

// partialPod returns what nodeOfPod leaves of examplePod.
func partialPod(name, node string) partial {
	return partial{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", ResourceVersion: "12345"}, value: node,
	}
}

// TestMessages decodes objects of a type that its user reads, and others.
func TestMessages(t *testing.T) {
	pod, service := examplePod("web-0", "n1"), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	mark := pod.DeepCopy()
	mark.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	bookmark := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9"}}
	meta := metav1.ListMeta{ResourceVersion: "7", Continue: "next"}
	list := &corev1.PodList{ListMeta: meta, Items: []corev1.Pod{*pod, *examplePod("db-0", "n2")}}
	first, other := partialPod("web-0", "n1"), podKind()
	other.FieldSelector, other.Unmarshal = "metadata.name=web", nil
	for name, tt := range map[string]struct {
		kinds []AnyKind
		in    runtime.Object
		want  runtime.Object
	}{
		"a pod":            {[]AnyKind{podKind()}, pod, &first},
		"a list":           {[]AnyKind{podKind()}, list, &partialList{ListMeta: meta, Items: []partial{first, partialPod("db-0", "n2")}}},
		"a bookmark":       {[]AnyKind{podKind()}, bookmark, &partial{TypeMeta: first.TypeMeta, ObjectMeta: bookmark.ObjectMeta, value: ""}},
		"end of a list":    {[]AnyKind{podKind()}, mark, nil},
		"another type":     {[]AnyKind{podKind()}, service, nil},
		"two users":        {[]AnyKind{podKind(), podKind()}, pod, nil},
		"one makes a pod":  {[]AnyKind{podKind(), other}, pod, nil},
		"the first does":   {[]AnyKind{other, podKind()}, pod, nil},
		"a list, no users": {nil, list, nil},
	} {
		reading, making := decoders(t, tt.kinds...)
		data := encode(t, tt.in)
		got, gvk, err := reading.Decode(data, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want, wantGVK, err := making.Decode(data, nil, nil)
		if tt.want != nil {
			want = tt.want
		}
		if err != nil || !reflect.DeepEqual(got, want) || *gvk != *wantGVK {
			t.Errorf("%s: got %v, %+v\nwant %v, %+v", name, gvk, got, wantGVK, want)
		}
	}
}

// TestMessageErrors has messages that no kind reads: the error is client-go's.
func TestMessageErrors(t *testing.T) {
	reading, making := decoders(t, podKind())
	whole := encode(t, examplePod("web-0", "n1"))
	for _, data := range [][]byte{nil, []byte("{}"), whole[:4], whole[:30], whole[:len(whole)-1], append(bytes.Clone(whole), 0xff)} {
		_, _, got := reading.Decode(data, nil, nil)
		_, _, want := making.Decode(data, nil, nil)
		if got == nil || want == nil || got.Error() != want.Error() {
			t.Errorf("%x: got %v, want %v", data, got, want)
		}
	}
	into := &corev1.Pod{}
	if _, _, err := reading.Decode(whole, nil, into); err != nil || into.Name != "web-0" {
		t.Errorf("%v: into %+v", err, into)
	}
}

// FuzzMessage has messages that may be damaged: of what can be decoded, name and version are
// those of the object.
func FuzzMessage(f *testing.F) {
	data := encode(f, examplePod("web-0", "n1"))
	f.Add(data)
	f.Add(encode(f, &corev1.PodList{Items: []corev1.Pod{*examplePod("web-0", "n1")}}))
	for _, n := range []int{5, 30, 31, 40, 200, len(data) / 2, len(data) - 1} {
		f.Add(data[:n])
		f.Add(append(bytes.Clone(data[:n]), bytes.Repeat([]byte{0xff}, 20)...))
	}
	reading, making := decoders(f, podKind())
	f.Fuzz(func(t *testing.T, data []byte) {
		want, _, err := making.Decode(data, nil, nil)
		got, _, err2 := reading.Decode(data, nil, nil)
		if err != nil {
			return
		}
		if err2 != nil {
			t.Fatalf("%x: %v", data, err2)
		}
		p, ok := want.(*corev1.Pod)
		q, read := got.(*partial)
		if ok && read && (p.Name != q.Name || p.Namespace != q.Namespace || p.ResourceVersion != q.ResourceVersion || p.Spec.NodeName != q.value) {
			t.Fatalf("%x: got %+v, want %+v", data, q, p)
		}
	})
}

// TestEvents decodes the events of a watch: the same as client-go does, but of the object no
// copy.
func TestEvents(t *testing.T) {
	all := scheme.Codecs.WithoutConversion()
	info, _ := runtime.SerializerInfoForMediaType(messageSerializer{all, make(messages)}.SupportedMediaTypes(), protobufContent)
	plain, _ := runtime.SerializerInfoForMediaType(all.SupportedMediaTypes(), protobufContent)
	event := metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: encode(t, examplePod("web-0", "n1"))}}
	whole, err := event.Marshal()
	must(t, err)
	for _, data := range [][]byte{whole, whole[:20], {}, nil} {
		var got, want metav1.WatchEvent
		res, _, err := info.StreamSerializer.Decode(data, nil, &got)
		_, _, err2 := plain.StreamSerializer.Decode(data, nil, &want)
		if (err == nil) != (err2 == nil) || err == nil && (res != runtime.Object(&got) || !reflect.DeepEqual(got, want)) {
			t.Errorf("%x: got %+v, %v\nwant %+v, %v", data, got, err, want, err2)
		}
		if err == nil && len(data) > 0 && &got.Object.Raw[0] != &data[len(data)-len(got.Object.Raw)] {
			t.Error("the object is a copy")
		}
	}
}
