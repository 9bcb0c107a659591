package render

import (
	"net/netip"
	"testing"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// TestPorts finds the port of elements of each kind, and of destinations.
func TestPorts(t *testing.T) {
	cfg := testConfig()
	cfg.Counters = CountServices
	r := mustNew(t, cfg)
	r.Update(model.Changes{Services: example()})
	web := Port{Service: model.Key{Namespace: "default", Name: "web"}, Name: "http", Number: 80, Protocol: model.TCP}
	quic := Port{Service: model.Key{Namespace: "default", Name: "etp-local"}, Name: "quic", Number: 80, Protocol: model.UDP}
	for _, tt := range []struct {
		family, set, key string
		want             Port
	}{
		{"ip", "service-connections", "10.96.0.1 . tcp . 80", web},
		{"ip", "service-connections", "198.51.100.1 . tcp . 80", web},
		{"ip", "nodeport-connections", "tcp . 30080", web},
		{"ip", "endpoints", "10.96.0.1 . tcp . 80 . 2", web},
		{"ip6", "service-connections", "fd00:10:96::5 . udp . 80", quic},
		{"ip", "service-connections", "10.96.0.1 . tcp . 81", Port{}},
		{"ip", "service-connections", "10.96.0.1", Port{}},
		{"ip", "service-cidrs", "10.96.0.0/16", Port{}},
		{"inet", "service-connections", "10.96.0.1 . tcp . 80", Port{}},
	} {
		if got, ok := r.PortOf(tt.family, tt.set, tt.key); got != tt.want || ok != (tt.want != Port{}) {
			t.Errorf("element %s %s { %s } is of %v, %v: want %v", tt.family, tt.set, tt.key, got, ok, tt.want)
		}
	}
	if got, _ := r.PortAt(netip.MustParseAddrPort("198.51.100.1:80"), model.TCP); got != web {
		t.Errorf("PortAt = %v, want %v", got, web)
	}
	if got, _ := r.PortAtNodePort(model.IPv4, 30082, model.UDP); got != quic {
		t.Errorf("PortAtNodePort = %v, want %v", got, quic)
	}
	if got, ok := r.PortAt(netip.MustParseAddrPort("10.244.1.1:8080"), model.TCP); ok {
		t.Errorf("PortAt of an endpoint = %v", got)
	}
}

// TestCounterNames has the values of the flag, and the reasons of named counters.
func TestCounterNames(t *testing.T) {
	for c := CountNothing; c <= CountEndpoints; c++ {
		if got, err := ParseCounters(c.String()); got != c || err != nil {
			t.Errorf("%q is %v, %v", c.String(), got, err)
		}
	}
	if _, err := ParseCounters("all"); err == nil {
		t.Error("all is a value")
	}
	cfg := Config{Counters: CountServices}
	for i, o := range cfg.dropCounters() {
		if r, ok := DroppedBy(o.GetName()); r != DropReason(i) || !ok {
			t.Errorf("counter %s is of reason %v, %v", o.GetName(), r, ok)
		}
	}
	if _, ok := DroppedBy("dropped-other"); ok {
		t.Error("another counter has a reason")
	}
}
