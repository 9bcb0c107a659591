package model

import (
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// workOf returns the work for another form of a slice, by the event and Refresh
// together, and the changes of the outcome.
func workOf(t *testing.T, s size, forms func(*discoveryv1.EndpointSlice) [2]*discoveryv1.EndpointSlice) uint64 {
	t.Helper()
	services, all := plainObjects(s)
	m := load(services, all)
	two := forms(all[len(all)/2])
	most := uint64(0)
	for i := range 6 {
		before := m.Stats().Work
		m.SetSlice(two[(i+1)%2])
		c := m.Refresh()
		if len(c.Services) != 1 {
			t.Fatalf("%s: %d Services changed", s, len(c.Services))
		}
		most = max(most, m.Stats().Work-before)
		turned := 0
		count := func(Endpoint) { turned++ }
		c.Services[0].New.Ports[0].Backends[IPv4].Cluster.Diff(c.Services[0].Old.Ports[0].Backends[IPv4].Cluster, count, count)
		if turned == 0 || turned > 2 {
			t.Errorf("%s: %d endpoints left and came", s, turned)
		}
	}
	t.Logf("%s: work %d", s, most)
	return most
}

// TestWorkIsWhatChanges: an endpoint that changes costs as much among 10,000 Services as among 100. Of
// its own Service it costs the changed slice, and one visit of each packed endpoint per list.
func TestWorkIsWhatChanges(t *testing.T) {
	for name, forms := range map[string]func(*discoveryv1.EndpointSlice) [2]*discoveryv1.EndpointSlice{"replace": replaced, "add and remove": shorter} {
		t.Run(name, func(t *testing.T) {
			if few, many := workOf(t, size{100, 10}, forms), workOf(t, size{10_000, 10}, forms); few != many {
				t.Errorf("work %d at 100 Services, %d at 10,000", few, many)
			}
			const most = 2*100 + 10 // the slice before and after
			for _, n := range []int{1000, 100_000} {
				if got := workOf(t, size{1, n}, forms); got > uint64(2*n)+2*most {
					t.Errorf("work %d at %d endpoints", got, n)
				}
			}
		})
	}
}

// TestResyncIsLittleWork: a slice that says nothing new is read and no more.
func TestResyncIsLittleWork(t *testing.T) {
	services, all := plainObjects(size{1, 10_000})
	m := load(services, all)
	before := m.Stats().Work
	m.SetSlice(all[7])
	m.Refresh()
	if got, want := m.Stats().Work-before, uint64(1+len(all[7].Endpoints)); got != want {
		t.Errorf("work %d, want %d", got, want)
	}
}
