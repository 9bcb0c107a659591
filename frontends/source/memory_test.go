package source

import (
	"fmt"
	"runtime"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// heap returns the bytes that are in use.
func heap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// ownSlice returns a slice of 10 endpoints that shares no string with another one.
func ownSlice(n int) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprint("team-", n), Name: fmt.Sprint("service-", n, "-x7k2p"), ResourceVersion: fmt.Sprint(100_000_000 + n),
			Labels: map[string]string{discoveryv1.LabelServiceName: fmt.Sprint("service-", n)},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for i := range 10 {
		node, zone := fmt.Sprintf("ip-10-0-%d-%d.eu-central-1.compute.internal", n%250, i), fmt.Sprint("eu-central-1", i)
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.%d.%d.%d", n>>8, n&255, i)}, NodeName: &node, Zone: &zone})
	}
	return s
}

// TestSourceKeepsNoObjects holds the source to a fraction of what its objects
// weigh.
func TestSourceKeepsNoObjects(t *testing.T) {
	r := newRecorder()
	sub := r.subscribed(sliceKind(r))
	sub.Deliver = func([]Event) {}
	s := storeOf(t, sub)
	const n = 500
	whole := make([]*discoveryv1.EndpointSlice, n)
	before := heap()
	for i := range n {
		whole[i] = ownSlice(i)
	}
	all := heap() - before
	for i := range n {
		must(t, s.Add(whole[i]))
		whole[i] = nil
	}
	left := heap() - before
	if left > all/20 {
		t.Errorf("of %.0f bytes %.0f are kept", all, left)
	}
	runtime.KeepAlive(s)
	if len(s.versions) != n {
		t.Errorf("%d versions", len(s.versions))
	}
}
