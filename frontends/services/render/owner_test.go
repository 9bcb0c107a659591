package render

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator/testing/nametest"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

func TestOwner(t *testing.T) {
	r := mustNew(t, testConfig())
	r.Update(model.Changes{Services: example()})
	for object, want := range map[string]string{
		"element ip weft endpoints { 10.96.0.1 . tcp . 80 . 2 }":                         "default/web",
		"element ip weft nodeport-endpoints { tcp . 30080 . 0 }":                         "default/web",
		"element ip weft nodeports { tcp . 30080 }":                                      "default/web",
		"element ip weft no-endpoint-services { 10.96.0.2 . tcp . 80 }":                  "default/empty",
		"element ip6 weft endpoints { fd00:10:96::a . udp . 53 . 0 }":                    "kube-system/dns",
		"element ip weft cluster-ips { 10.96.0.3 }":                                      "default/sctp",
		"element ip weft services { 10.96.9.9 . tcp . 80 }":                              "",
		"element ip weft hairpin { 10.244.1.1 . 10.244.1.1 . tcp . 8080 }":               "",
		"element ip weft endpoints { nonsense . 2 }":                                     "",
		"element ip weft endpoints { 10.96.0.1 . tcp . 80 . 99999999999999999 }":         "",
		"rule ip weft pick-3 #1":                                                         "",
		"element ip weft services { 198.51.100.1 . tcp . 80 }":                           "default/web",
		"element ip weft shortcuts { 198.51.100.3 . udp . 80 }":                          "default/etp-local",
		"element ip weft nodeport-shortcuts { udp . 30082 }":                             "default/etp-local",
		"element ip weft endpoints { 198.51.100.3 . tcp . 80 . 1000000 }":                "default/etp-local",
		"element ip6 weft nodeport-endpoints { tcp . 30082 . 1000000 }":                  "default/etp-local",
		"element ip weft source-ranges { 198.51.100.5 . tcp . 80 }":                      "default/limited",
		"element ip weft endpoints-3fa9c899-default/sticky/tcp/http { 10.244.1.1 . 80 }": "default/sticky",
		"element ip weft sticky-nodeports { udp . 30084 }":                               "default/sticky-local",
		"rule ip weft remember-3fa9c899-default/sticky/tcp/http #1":                      "default/sticky",
		"chain ip6 weft internal-recall-769755b7-default/sticky-local/udp/dns":           "default/sticky-local",
		"set ip weft local-endpoints-769755b7-default/sticky-local/udp/dns":              "default/sticky-local",
		"map ip weft affinity-3fa9c899-default/sticky/tcp/http":                          "default/sticky",
		"map ip weft local-affinity-769755b7-default/sticky-local/udp/dns":               "default/sticky-local",
		"map ip weft affinity-3fa9c899-default/sticky/tcp/htt":                           "",
		"element ip weft service-cidrs { 10.96.0.0/16 }":                                 "",
		"element ip weft nothing { 10.96.0.1 . tcp . 80 }":                               "",
		"": "",
	} {
		got, ok := r.Owner(nametest.Parse(object))
		if ok != (want != "") || ok && got.String() != want {
			t.Errorf("owner of %q is %q, want %q", object, got, want)
		}
	}
}

// TestOwnerWork: whose a violation is costs the same however many Services and
// endpoints there are.
func TestOwnerWork(t *testing.T) {
	name := affinityName(model.Key{Namespace: "default", Name: "s3"}, &model.Port{Name: "http", Protocol: model.TCP})
	small, long, wide := filled(t, "sticky", 10, 10), filled(t, "sticky", 10, 5_000), filled(t, "sticky", 1_000, 10)
	for _, object := range []string{
		"element ip weft endpoints { 10.96.0.3 . tcp . 80 . 2 }",
		"element ip weft cluster-ips { 10.96.0.3 }",
		"element ip weft nodeports { tcp . 30003 }",
		"element ip weft sticky-services { 10.96.0.3 . tcp . 80 }",
		"chain ip weft remember-" + name + " rule 1",
		"map ip weft affinity-" + name,
	} {
		work := func(r *Renderer) uint64 {
			before := r.Work()
			if of, ok := r.Owner(nametest.Parse(object)); !ok || of.String() != "default/s3" {
				t.Errorf("owner of %s is %q", object, of)
			}
			return r.Work() - before
		}
		few := work(small)
		if n := work(long); few == 0 || n != few {
			t.Errorf("%s: %d units with 10 endpoints, %d with 5,000", object, few, n)
		}
		publishtest.Equal(t, fmt.Sprintf("%s: work among 1,000 Services and among 10", object), work(wide), few)
	}
}

// TestOwnerOfTwo: while two Services have a listener the last one rendered owns it, and
// what the other one does then takes nothing from it.
func TestOwnerOfTwo(t *testing.T) {
	const object = "element ip weft services { 10.96.0.1 . tcp . 80 }"
	r := mustNew(t, testConfig())
	for _, tt := range []struct {
		changes []model.Change
		want    string
	}{
		{put(service("default/a", "10.96.0.1", port("http tcp 80 0", "10.244.1.1:80"))), "default/a"},
		{put(service("default/b", "10.96.0.1", port("http tcp 80 0", "10.244.1.2:80"))), "default/b"},
		{gone("default/a"), "default/b"},
		{put(withAffinity(service("default/b", "10.96.0.1", port("http tcp 80 0", "10.244.1.2:80")), time.Hour)), "default/b"},
		{gone("default/b"), ""},
	} {
		r.Update(model.Changes{Services: tt.changes})
		if got, ok := r.Owner(nametest.Parse(object)); ok != (tt.want != "") || ok && got.String() != tt.want {
			t.Errorf("owner is %q, want %q", got, tt.want)
		}
	}
	publishtest.Equal(t, "keys of no Service", len(r.owners.all), 0)
}

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
