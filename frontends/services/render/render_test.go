package render

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

var update = flag.Bool("update", false, "write the golden files anew")

var must = publishtest.Must

func mustNew(t testing.TB, cfg Config) *Renderer {
	t.Helper()
	r, err := New(cfg)
	must(t, err)
	return r
}

// example is a model with everything that this renderer knows.
func example() []model.Change {
	draining := service("kube-system/dns", "10.96.0.10 fd00:10:96::a",
		port("dns udp 53 0", "10.244.1.53:5353*", "10.244.2.53:5353", "[fd00:10:244:1::53]:5353*"),
		port("dns-tcp tcp 53 0", "10.244.1.53:5353*", "10.244.2.53:5353"))
	draining.Ports[0].Backends[model.IPv4].Draining = endpointsOf("10.244.3.53:5353")
	var out []model.Change
	for _, s := range []*model.Service{
		local(service("default/itp-local", "10.96.0.4", port("http tcp 80 0", "10.244.1.9:80", "10.244.2.9:80")), true, false),
		draining,
		reach(service("default/web", "10.96.0.1", port("http tcp 80 30080", "10.244.1.1:8080*", "10.244.1.2:8080*", "10.244.2.1:8080")), "198.51.100.1"),
		reach(service("default/empty", "10.96.0.2", port("- tcp 80 30081")), "198.51.100.2"),
		service("default/sctp", "10.96.0.3", port("diameter sctp 3868 0", "10.244.2.7:3868")),
		reach(local(service("default/etp-local", "10.96.0.5 fd00:10:96::5",
			port("http tcp 80 30082", "10.244.1.1:80*", "10.244.2.1:80", "[fd00:10:244:1::1]:80*", "[fd00:10:244:2::1]:80"),
			port("quic udp 80 30082", "10.244.2.1:80")), false, true), "198.51.100.3*", "2001:db8:1::3*"),
		limit(reach(service("default/limited", "10.96.0.6 fd00:10:96::6", port("http tcp 80 0", "10.244.1.1:80*", "[fd00:10:244:1::1]:80*")),
			"198.51.100.4", "198.51.100.5*", "2001:db8:1::5*"), "192.0.2.0/24", "203.0.113.7/32", "2001:db8:2::/64"),
		withAffinity(service("default/sticky", "10.96.0.7", port("http tcp 80 30083", "10.244.1.1:80*", "10.244.2.1:80")), 3*time.Hour),
		withAffinity(reach(local(service("default/sticky-local", "10.96.0.8 fd00:10:96::8",
			port("dns udp 53 30084", "10.244.1.1:53*", "10.244.2.1:53", "[fd00:10:244:1::1]:53*")), false, true), "198.51.100.6"), time.Minute),
	} {
		if s.Ports[0].Name == "-" {
			s.Ports[0].Name = ""
		}
		out = append(out, put(s)...)
	}
	return out
}

func TestGolden(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg  func(*Config)
		node *model.Node
	}{
		"primary": {node: nodeOf("192.0.2.1", "2001:db8::1")},
		"nodeport-prefixes": {node: nodeOf("192.0.2.1"), cfg: func(c *Config) {
			var list []netip.Prefix
			for _, p := range []string{"192.0.2.0/24", "192.0.2.128/25", "127.0.0.0/8", "198.51.100.7/32"} {
				list = append(list, netip.MustParsePrefix(p))
			}
			c.NodePortAddresses = model.NodePorts(list...)
		}},
		"loopback": {node: nodeOf("192.0.2.1"), cfg: func(c *Config) {
			c.Loopback = [model.NumFamilies]model.LoopbackMode{model.LoopbackServed, model.LoopbackRejected}
		}},
		"masquerade-all": {cfg: func(c *Config) { c.MasqueradeAll, c.MasqueradeBit = true, 15 }},
		"two-cidrs": {cfg: func(c *Config) {
			c.Families = [2]bool{true, false}
			c.Detect.CIDRs = append(c.Detect.CIDRs, netip.MustParsePrefix("10.250.0.0/16"), netip.MustParsePrefix("10.244.128.0/17"))
		}},
		"interface-prefix": {cfg: func(c *Config) { c.Detect = Detect{Mode: DetectInterfacePrefix, Interface: "cni"} }},
		"count-endpoints":  {cfg: func(c *Config) { c.Counters = CountEndpoints }},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig()
			if tt.cfg != nil {
				tt.cfg(&cfg)
			}
			r := mustNew(t, cfg)
			r.Update(model.Changes{Services: example(), Node: tt.node, ServiceCIDRs: cidrs("10.96.0.0/16", "10.96.1.0/24", "10.112.0.0/16", "fd00:10:96::/108")})
			rules := load(t, r.Snapshot())
			rules.check(t)
			got := rules.text()
			path := filepath.Join("testdata", name+".nft")
			if *update {
				must(t, os.WriteFile(path, []byte(got), 0o644))
			}
			want, err := os.ReadFile(path)
			must(t, err)
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("ruleset differs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPatchSize pins what a change costs in elements, however many there are.
func TestPatchSize(t *testing.T) {
	const n = 1000
	eps := make([]string, n)
	for i := range eps {
		eps[i] = fmt.Sprintf("10.244.%d.%d:8080", i/250, i%250+1)
	}
	web := func(eps ...string) *model.Service {
		return service("default/web", "10.96.0.1", port("http tcp 80 0", eps...))
	}
	without := func(i int) []string { return append(append([]string{}, eps[:i]...), eps[i+1:]...) }
	for _, tt := range []struct {
		name           string
		to             *model.Service
		added, removed int
		chains         int
	}{
		{"nothing", web(eps...), 0, 0, 0},
		{"replaced", web(append(without(17), "10.244.200.1:8080")...), 1, 0, 0},
		{"added", web(append(append([]string{}, eps...), "10.244.0.251:8080")...), 2, 0, 1},
		{"removed from the middle", web(without(17)...), 2, 1, 1},
		{"removed from the end", web(without(n - 1)...), 1, 1, 1},
		{"renamed port", service("default/web", "10.96.0.1", port("www tcp 80 0", eps...)), 1, 0, 0},
		// The chain is the one on the hook that finds Services without endpoints.
		{"all gone", web(), 1, n + 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := mustNew(t, testConfig())
			r.Update(model.Changes{Services: put(web(eps...))})
			rules := load(t, r.Snapshot())
			u := r.Update(model.Changes{Services: put(tt.to)})
			if u.Added != tt.added || u.Removed != tt.removed {
				t.Errorf("%d elements added, %d removed; want %d, %d", u.Added, u.Removed, tt.added, tt.removed)
			}
			chains := 0
			for _, tp := range u.Patch.GetTables() {
				chains += len(tp.GetPutChains())
			}
			publishtest.Equal(t, "chains", chains, tt.chains)
			rules.patch(t, u.Patch)
			rules.equals(t, r, tt.name)
		})
	}
}

func TestSecondFamilyNeedsSnapshot(t *testing.T) {
	cfg := testConfig()
	cfg.Detect.CIDRs = cfg.Detect.CIDRs[:1]
	r := mustNew(t, cfg)
	u := r.Update(model.Changes{Services: put(service("default/a", "10.96.0.1", port("http tcp 80 0", "10.244.1.1:80")))})
	if u.Snapshot || len(r.Snapshot().GetTables()) != 1 {
		t.Fatal("there is an ip6 table without a use")
	}
	u = r.Update(model.Changes{Services: put(service("default/b", "fd00::1", port("http tcp 80 0", "[fd00:10:244::1]:80")))})
	if !u.Snapshot || u.Patch != nil || len(r.Snapshot().GetTables()) != 2 {
		t.Errorf("update %+v, want a snapshot with two tables", u)
	}
	cfg.Families[model.IPv6] = false
	r = mustNew(t, cfg)
	u = r.Update(model.Changes{Services: put(service("default/b", "fd00::1", port("http tcp 80 0", "[fd00:10:244::1]:80")))})
	if !u.Empty() || len(r.Snapshot().GetTables()) != 1 {
		t.Errorf("update %+v on a node without IPv6, want none", u)
	}
}

// TestServiceCIDRsNeedTable: ranges of a family bring its table, which drops what goes
// there.
func TestServiceCIDRsNeedTable(t *testing.T) {
	cfg := testConfig()
	cfg.Detect.CIDRs = cfg.Detect.CIDRs[:1]
	r := mustNew(t, cfg)
	if u := r.Update(model.Changes{ServiceCIDRs: cidrs("10.96.0.0/16")}); u.Snapshot || u.Added != 1 {
		t.Errorf("update %+v, want one element", u)
	}
	if u := r.Update(model.Changes{ServiceCIDRs: cidrs("10.96.0.0/16", "fd00:10:96::/108")}); !u.Snapshot || len(r.Snapshot().GetTables()) != 2 {
		t.Errorf("update %+v, want a snapshot with two tables", u)
	}
}

func TestComment(t *testing.T) {
	comment := func(name model.Key, port string) string { return string(appendComment(nil, name, port)) }
	long := model.Key{Namespace: strings.Repeat("n", 63), Name: strings.Repeat("s", 63)}
	got := comment(long, strings.Repeat("p", 15))
	if len(got) != maxComment || got != comment(long, strings.Repeat("p", 15)) {
		t.Errorf("comment %q has %d bytes", got, len(got))
	}
	if other := comment(long, strings.Repeat("p", 14)+"q"); other == got {
		t.Error("two ports have the same comment")
	}
	publishtest.Equal(t, "comment", comment(model.Key{Namespace: "a", Name: "b"}, "c"), "a/b:c")
	publishtest.Equal(t, "comment", comment(model.Key{Namespace: "a", Name: "b"}, ""), "a/b")
}

func TestConfigErrors(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"bit":            func(c *Config) { c.MasqueradeBit = 32 },
		"prefix":         func(c *Config) { c.Detect.CIDRs = []netip.Prefix{{}} },
		"no interface":   func(c *Config) { c.Detect = Detect{Mode: DetectInterface} },
		"long interface": func(c *Config) { c.Detect = Detect{Mode: DetectInterfacePrefix, Interface: "sixteen-bytes-ab"} },
		"star":           func(c *Config) { c.Detect = Detect{Mode: DetectInterfacePrefix, Interface: "cni*"} },
		"quote":          func(c *Config) { c.Detect = Detect{Mode: DetectInterface, Interface: `a" accept`} },
		"backslash":      func(c *Config) { c.Detect = Detect{Mode: DetectInterface, Interface: `a\`} },
		"space":          func(c *Config) { c.Detect = Detect{Mode: DetectInterface, Interface: "a b"} },
		"mode":           func(c *Config) { c.Detect = Detect{Mode: 9} },
		"families":       func(c *Config) { c.Families = [2]bool{} },
	} {
		cfg := testConfig()
		change(&cfg)
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
