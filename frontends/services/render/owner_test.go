package render

import (
	"testing"
	"time"

	"github.com/weft-proxy/weft/frontends/services/model"
)

func TestOwner(t *testing.T) {
	r := mustNew(t, testConfig())
	r.Update(model.Changes{Services: example()})
	for object, want := range map[string]string{
		"table ip weft map endpoints element 10.96.0.1 . tcp . 80 . 2":                                   "default/web",
		"table ip weft map nodeport-endpoints element tcp . 30080 . 0":                                   "default/web",
		"table ip weft map nodeports element tcp . 30080":                                                "default/web",
		"table ip weft map no-endpoint-services element 10.96.0.2 . tcp . 80":                            "default/empty",
		"table ip6 weft map endpoints element fd00:10:96::a . udp . 53 . 0":                              "kube-system/dns",
		"table ip weft set cluster-ips element 10.96.0.3":                                                "default/sctp",
		"table ip weft map services element 10.96.9.9 . tcp . 80":                                        "",
		"table ip weft set hairpin element 10.244.1.1 . 10.244.1.1 . tcp . 8080":                         "",
		"table ip weft map endpoints element nonsense . 2":                                               "",
		"table ip weft map endpoints element 10.96.0.1 . tcp . 80 . 99999999999999999":                   "",
		"table ip weft chain pick-3 rule 1":                                                              "",
		"table ip weft map services element 198.51.100.1 . tcp . 80":                                     "default/web",
		"table ip weft map shortcuts element 198.51.100.3 . udp . 80":                                    "default/etp-local",
		"table ip weft map nodeport-shortcuts element udp . 30082":                                       "default/etp-local",
		"table ip weft map endpoints element 198.51.100.3 . tcp . 80 . 1000000":                          "default/etp-local",
		"table ip6 weft map nodeport-endpoints element tcp . 30082 . 1000000":                            "default/etp-local",
		"table ip weft set firewalled element 198.51.100.5 . tcp . 80":                                   "default/limited",
		"table ip weft set allowed-sources element 198.51.100.5 . tcp . 80 . 192.0.2.0/24":               "default/limited",
		"table ip6 weft set allowed-sources element 2001:db8:1::5 . tcp . 80 . 2001:db8:2::/64":          "default/limited",
		"table ip weft map sticky-endpoints element 10.96.0.7 . tcp . 80 . 1":                            "default/sticky",
		"table ip weft map nodeport-sticky-endpoints element udp . 30084 . 1000000":                      "default/sticky-local",
		"table ip weft chain remember-3fa9c899-default/sticky/tcp/http__10.244.1.1/80 rule 1":            "default/sticky",
		"table ip6 weft chain local-remember-769755b7-default/sticky-local/udp/dns__fd00.10.244.1..1/53": "default/sticky-local",
		"table ip weft map affinity-3fa9c899-default/sticky/tcp/http":                                    "default/sticky",
		"table ip weft map local-affinity-769755b7-default/sticky-local/udp/dns":                         "default/sticky-local",
		"table ip weft map affinity-3fa9c899-default/sticky/tcp/htt":                                     "",
		"table ip weft set allowed-sources element nonsense":                                             "",
		"table ip weft set service-cidrs element 10.96.0.0/16":                                           "",
		"table ip weft map nothing element 10.96.0.1 . tcp . 80":                                         "",
		"": "",
	} {
		got, ok := r.Owner(object)
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
		"table ip weft map endpoints element 10.96.0.3 . tcp . 80 . 2",
		"table ip weft set cluster-ips element 10.96.0.3",
		"table ip weft map nodeports element tcp . 30003",
		"table ip weft map sticky-endpoints element 10.96.0.3 . tcp . 80 . 2",
		"table ip weft chain remember-" + name + "__10.128.0.31/8080 rule 1",
		"table ip weft map affinity-" + name,
	} {
		work := func(r *Renderer) uint64 {
			before := r.Work()
			if of, ok := r.Owner(object); !ok || of.String() != "default/s3" {
				t.Errorf("owner of %s is %q", object, of)
			}
			return r.Work() - before
		}
		few := work(small)
		if n := work(long); few == 0 || n != few {
			t.Errorf("%s: %d units with 10 endpoints, %d with 5,000", object, few, n)
		}
		if n := work(wide); n != few {
			t.Errorf("%s: %d units among 10 Services, %d among 1,000", object, few, n)
		}
	}
}

// TestOwnerOfTwo: while two Services have a listener the last one rendered owns it, and
// what the other one does then takes nothing from it.
func TestOwnerOfTwo(t *testing.T) {
	const object = "table ip weft map services element 10.96.0.1 . tcp . 80"
	r := mustNew(t, testConfig())
	for _, tt := range []struct {
		changes []model.Change
		want    string
	}{
		{put(service("default/a", "10.96.0.1", port("http tcp 80 0", "10.244.1.1:80"))), "default/a"},
		{put(service("default/b", "10.96.0.1", port("http tcp 80 0", "10.244.1.2:80"))), "default/b"},
		{gone("default/a"), "default/b"},
		{put(stick(service("default/b", "10.96.0.1", port("http tcp 80 0", "10.244.1.2:80")), time.Hour)), "default/b"},
		{gone("default/b"), ""},
	} {
		r.Update(model.Changes{Services: tt.changes})
		if got, ok := r.Owner(object); ok != (tt.want != "") || ok && got.String() != tt.want {
			t.Errorf("owner is %q, want %q", got, tt.want)
		}
	}
	if n := len(r.owners.all); n != 0 {
		t.Errorf("%d keys are owned by no Service", n)
	}
}
