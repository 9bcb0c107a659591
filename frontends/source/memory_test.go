package source

import (
	"runtime"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weft-proxy/weft/frontends/source/apitest"
)

// heap returns the bytes that are in use.
func heap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
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
		whole[i] = apitest.FullSlice(t, i, 10)
	}
	all := heap() - before
	for i := range n {
		if err := s.Add(whole[i]); err != nil {
			t.Fatal(err)
		}
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
