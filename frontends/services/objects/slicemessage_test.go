package objects

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// randomSlice returns a slice with some of what slices can have.
func randomSlice(r *rand.Rand) *discoveryv1.EndpointSlice {
	maybe := func() bool { return r.IntN(2) == 0 }
	truth := func() *bool {
		if maybe() {
			return nil
		}
		v := maybe()
		return &v
	}
	text := func(prefix string) *string {
		if maybe() {
			return nil
		}
		v := prefix + strconv.Itoa(r.IntN(3))
		return &v
	}
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "web-" + strconv.Itoa(r.IntN(9)), Namespace: "shop"}, AddressType: discoveryv1.AddressTypeIPv4}
	if maybe() {
		s.Labels = map[string]string{discoveryv1.LabelServiceName: "web", "app": "web"}
	}
	if maybe() {
		s.Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: "2026-01-02T03:04:05Z", "other": "x"}
	}
	if maybe() {
		s.UID, s.ResourceVersion, s.Finalizers = "uid", "7", []string{"a"}
		s.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: metav1.NewFieldsV1("{}")}}
	}
	for range r.IntN(4) {
		protocol, number := corev1.ProtocolTCP, int32(r.IntN(9000)) //nolint:gosec // small
		s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: text("port"), Protocol: &protocol, Port: &number, AppProtocol: text("http")})
	}
	for range r.IntN(5) {
		e := discoveryv1.Endpoint{
			Addresses: []string{"10.0.0." + strconv.Itoa(r.IntN(9)), "10.0.1.1"}[:r.IntN(3)], NodeName: text("n"), Zone: text("z"), Hostname: text("h"),
			Conditions: discoveryv1.EndpointConditions{Ready: truth(), Serving: truth(), Terminating: truth()},
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Name: "web", UID: types.UID("1")},
		}
		if maybe() {
			e.Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "z"}}, ForNodes: []discoveryv1.ForNode{{Name: "n"}}}
		}
		s.Endpoints = append(s.Endpoints, e)
	}
	return s
}

// decoded returns what trimSlice for node n1 leaves of a message, without the metadata that the model does not read.
func decoded(message []byte) (*discoveryv1.EndpointSlice, error) {
	s := &discoveryv1.EndpointSlice{}
	if err := s.Unmarshal(message); err != nil {
		return nil, err
	}
	s = podsOf("n1").trimSlice(s)
	s.ObjectMeta = metav1.ObjectMeta{Name: s.Name, Namespace: s.Namespace, Labels: s.Labels, Annotations: s.Annotations}
	return s, nil
}

// TestUnmarshalSlice has random slices: of the message and of the object the model gets the same.
func TestUnmarshalSlice(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	for range 5000 {
		message, err := randomSlice(r).Marshal()
		must(t, err)
		want, err := decoded(message)
		must(t, err)
		if got, err := podsOf("n1").unmarshalSlice(message); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("error %v\ngot  %+v\nwant %+v", err, got, want)
		}
	}
}

// FuzzUnmarshalSlice has messages that may be damaged, or joined from parts of others: what both decoders take for a
// slice is the same slice.
func FuzzUnmarshalSlice(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // a test
	var last []byte
	for range 20 {
		message, err := randomSlice(r).Marshal()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(message)
		f.Add(slicesJoined(last, message))
		last = message
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		got, err := podsOf("n1").unmarshalSlice(message)
		want, wantErr := decoded(message)
		if err == nil && wantErr == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	})
}

// slicesJoined returns a part of one message and another one.
func slicesJoined(a, b []byte) []byte { return append(bytes.Clone(a[:len(a)/2]), b...) }
