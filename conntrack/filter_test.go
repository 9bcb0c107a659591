package conntrack

import (
	"net/netip"
	"testing"
)

func TestFilter(t *testing.T) {
	dns4 := Stale{Addr: netip.MustParseAddr("10.96.0.10"), Port: 53, First: true}
	dns6 := Stale{Addr: netip.MustParseAddr("fd00:96::10"), Port: 53, First: true}
	lost := func(to string, gone ...string) Stale {
		return Stale{Addr: ap(to).Addr(), Port: ap(to).Port(), Removed: aps(gone...)}
	}
	dns, any53, backend := endOf(ap("10.96.0.10:53")), end{port: 53}, endOf(ap("10.1.0.1:5353"))
	for _, tt := range []struct {
		name   string
		stale  []Stale
		family family
		want   filter
		ok     bool
	}{
		{"nothing", nil, familyIPv4, filter{family: familyIPv4}, false},
		{"one destination", []Stale{dns4, dns4}, familyIPv4, filter{familyIPv4, dns, dns, false}, true},
		{"other family only", []Stale{dns4}, familyIPv6, filter{family: familyIPv6}, false},
		{"each family its own", []Stale{dns4, dns6}, familyIPv6, filter{familyIPv6, endOf(ap("[fd00:96::10]:53")), endOf(ap("[fd00:96::10]:53")), false}, true},
		{"common port", []Stale{dns4, {Addr: netip.MustParseAddr("10.96.0.11"), Port: 53, First: true}},
			familyIPv4, filter{familyIPv4, any53, any53, false}, true},
		{"common address", []Stale{dns4, {Addr: dns4.Addr, Port: 54, First: true}},
			familyIPv4, filter{familyIPv4, end{addr: dns4.Addr}, end{addr: dns4.Addr}, false}, true},
		{"node port", []Stale{{Port: 30053, First: true}}, familyIPv6, filter{familyIPv6, end{port: 30053}, end{port: 30053}, false}, true},
		{"node port of IPv4", []Stale{{Addr: netip.IPv4Unspecified(), Port: 30053, First: true}}, familyIPv6, filter{family: familyIPv6}, false},
		{"node port of one family", []Stale{{Port: 30053, Removed: aps("10.1.0.1:53")}},
			familyIPv6, filter{family: familyIPv6}, false},
		{"one backend", []Stale{lost("10.96.0.10:53", "10.1.0.1:5353")}, familyIPv4, filter{familyIPv4, dns, backend, false}, true},
		{"one backend of many destinations", []Stale{lost("10.96.0.10:53", "10.1.0.1:5353"), lost("10.96.0.11:54", "10.1.0.1:5353"), {Port: 30053, Removed: aps("10.1.0.1:5353")}},
			familyIPv4, filter{familyIPv4, end{}, backend, false}, true},
		{"backends with a common port", []Stale{lost("10.96.0.10:53", "10.1.0.1:5353", "10.1.0.2:5353")},
			familyIPv4, filter{familyIPv4, dns, end{port: 5353}, false}, true},
		{"ports of one backend", []Stale{lost("10.96.0.10:53", "10.1.0.1:5353"), lost("10.96.0.10:53", "10.1.0.1:5354")},
			familyIPv4, filter{familyIPv4, dns, end{addr: backend.addr}, false}, true},
		{"nothing in common", []Stale{lost("10.96.0.10:53", "10.1.0.1:5353", "10.1.0.2:1", "10.1.0.1:5353"), lost("10.96.0.11:54", "10.1.0.1:5353")},
			familyIPv4, filter{family: familyIPv4}, true},
		{"lost and untranslated", []Stale{{Addr: dns4.Addr, Port: 53, First: true, Removed: aps("10.1.0.1:5353")}},
			familyIPv4, filter{familyIPv4, dns, end{}, false}, true},
	} {
		got, ok := matchChanges(tt.stale, false).filter(tt.family)
		if got != tt.want || ok != tt.ok {
			t.Errorf("%s: filter = %+v, %v; want %+v, %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
	// Flows from all others than the backends of a destination are stale: nothing is known of where they come from.
	live := matchDestinations([]Destination{{Addr: dns4.Addr, Port: 53, Backends: aps("10.1.0.1:5353")}})
	if got, ok := live.filter(familyIPv4); got != (filter{family: familyIPv4, to: dns}) || !ok {
		t.Errorf("filter of all flows but those to a backend = %+v, %v", got, ok)
	}
}

// TestFilterLetsStaleThrough compares filters with the matcher: no flow that is stale
// may be left out.
func TestFilterLetsStaleThrough(t *testing.T) {
	dsts := aps("10.96.0.10:53", "10.96.0.10:54", "10.96.0.11:53", "192.0.2.1:53", "192.0.2.1:30053")
	froms := append(aps("10.1.0.1:5353", "10.1.0.1:53", "10.1.0.2:5353"), dsts...)
	var entries []Stale
	for i, dst := range dsts {
		addr := dst.Addr()
		if i >= 3 {
			addr = netip.IPv4Unspecified()
		}
		entries = append(entries, Stale{Addr: addr, Port: dst.Port(), First: true})
		for _, from := range froms[:3] {
			entries = append(entries, Stale{Addr: addr, Port: dst.Port(), Removed: []netip.AddrPort{from}})
		}
	}
	narrow := 0
	for i := range entries {
		for j := range entries {
			m := matchChanges([]Stale{entries[i], entries[j]}, false)
			m.local = localsOf("192.0.2.1/32")
			f, ok := m.filter(familyIPv4)
			for _, dst := range dsts {
				for _, from := range froms {
					stale := m.remove(flow{dst: dst, reply: from})
					passes := ok && f.to.widen(endOf(dst)) == f.to && f.from.widen(endOf(from)) == f.from
					if stale && !passes {
						t.Errorf("%+v and %+v: flow %v = %v is stale, and %+v leaves it out", entries[i], entries[j], dst, from, f)
					}
					if !passes {
						narrow++
					}
				}
			}
		}
	}
	if narrow == 0 {
		t.Error("no filter leaves anything out")
	}
}
