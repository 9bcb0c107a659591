package demo

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/convert"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestProgrammedRulesAreNFTs compares the expressions of every rule of Services and the demo's policy
// with nft(8)'s for the same text.
func TestProgrammedRulesAreNFTs(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	fragments := rendered(t)
	policy, err := convert.File(policyNFT)
	if err != nil {
		t.Fatal(err)
	}
	fragments["demo policy"] = &weftv1.Fragment{Tables: policy}
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(fragments)) {
		f := fragments[name]
		t.Run(name, func(t *testing.T) {
			if len(f.GetTables()) == 0 {
				t.Fatal("the fragment has no tables")
			}
			for _, table := range f.GetTables() {
				compareRules(t, ns, table, seen)
			}
		})
	}
	t.Logf("%d different rules of %d fragments compared", len(seen), len(fragments))
}

// rendered are the snapshots of the services frontend.
func rendered(t *testing.T) map[string]*weftv1.Fragment {
	t.Helper()
	prefixes := func(texts ...string) (out []netip.Prefix) {
		for _, text := range texts {
			out = append(out, netip.MustParsePrefix(text))
		}
		return out
	}
	node := &model.Node{Known: true, Name: "n1", Addresses: [model.NumFamilies]netip.Addr{
		netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1"),
	}}
	out := map[string]*weftv1.Fragment{}
	for name, tt := range map[string]struct {
		cfg  func(*render.Config)
		node *model.Node
	}{
		"addresses of the node":  {node: node},
		"any local address":      {},
		"prefixes for NodePorts": {cfg: func(c *render.Config) { c.NodePortAddresses = prefixes("192.0.2.0/24", "2001:db8::/64") }},
		"all NodePort addresses": {cfg: func(c *render.Config) { c.NodePortAddresses = prefixes("0.0.0.0/0", "::/0") }},
		"no prefix of a family":  {cfg: func(c *render.Config) { c.NodePortAddresses = prefixes("192.0.2.0/24") }},
		"masquerade all":         {cfg: func(c *render.Config) { c.MasqueradeAll = true }},
		"lowest mark bit":        {cfg: func(c *render.Config) { c.MasqueradeBit = 0 }},
		"highest mark bit":       {cfg: func(c *render.Config) { c.MasqueradeBit = 31 }},
		"no cluster CIDR":        {cfg: func(c *render.Config) { c.Detect.CIDRs = nil }},
		"single addresses":       {cfg: func(c *render.Config) { c.Detect.CIDRs = prefixes("10.244.0.1/32", "fd00:10:244::1/128") }},
		"several cluster CIDRs": {cfg: func(c *render.Config) {
			c.Detect.CIDRs = prefixes("10.244.0.0/16", "10.250.0.0/15", "fd00:10:244::/56", "fd00:10:250::/56")
		}},
	} {
		cfg := render.Config{
			Families: [model.NumFamilies]bool{true, true}, MasqueradeBit: render.DefaultMasqueradeBit,
			Detect: render.Detect{CIDRs: prefixes("10.244.0.0/16", "fd00:10:244::/56")},
		}
		if tt.cfg != nil {
			tt.cfg(&cfg)
		}
		r, err := render.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		r.Update(model.Changes{Services: manyServices(), Node: tt.node})
		out[name] = r.Snapshot()
	}
	return out
}

// manyServices are dual-stack Services with 0 to 12, 100 and 1,000 endpoints, on all protocols and with
// NodePorts.
func manyServices() []model.Change {
	var out []model.Change
	for i, n := range []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 100, 1000} {
		name := model.Key{Namespace: "default", Name: fmt.Sprintf("s%d", n)}
		s := &model.Service{Name: name, ClusterIPs: [model.NumFamilies]netip.Addr{
			netip.AddrFrom4([4]byte{10, 96, 0, byte(i + 1)}),
			netip.AddrFrom16([16]byte{0xfd, 0, 0, 0x10, 15: byte(i + 1)}),
		}}
		for p, protocol := range []model.Protocol{model.TCP, model.UDP, model.SCTP} {
			port := model.Port{
				Name: protocol.String(), Protocol: protocol, Number: 80,
				ClusterIPs: s.ClusterIPs, NodePort: uint16(30000 + 3*i + p),
			}
			for e := range n {
				for f, addr := range [...]netip.Addr{
					netip.AddrFrom4([4]byte{10, 244, byte(e / 250), byte(e%250 + 1)}),
					netip.AddrFrom16([16]byte{0xfd, 0, 0, 0x10, 2, 0x44, 14: byte(e / 250), 15: byte(e%250 + 1)}),
				} {
					b := &port.Backends[f]
					b.Cluster = model.MakeEndpoints(append(slices.Collect(b.Cluster.All()), model.Endpoint{Addr: netip.AddrPortFrom(addr, 8080), Local: e == 0})...)
				}
			}
			s.Ports = append(s.Ports, port)
		}
		out = append(out, model.Change{Name: name, New: s})
	}
	return out
}

// compareRules skips seen rules.
func compareRules(t *testing.T, ns *nfttest.NS, table *weftv1.Table, seen map[string]bool) {
	t.Helper()
	family, err := nft.ParseFamily(table.GetFamily())
	if err != nil {
		t.Fatal(err)
	}
	scope := declare(t, family, table)
	theirs := &nfttest.Ruleset{Family: table.GetFamily(), Decls: scope.decls}
	for _, c := range table.GetChains() {
		scope.chains = append(scope.chains, c.GetName())
		for _, r := range c.GetRules() {
			if id := table.GetFamily() + " " + r.GetText(); !seen[id] {
				seen[id] = true
				theirs.Rules = append(theirs.Rules, r.GetText())
			}
		}
	}
	theirs.Chains = scope.chains
	want := ns.Netlink(t, theirs)
	for i, text := range theirs.Rules {
		rule, err := compile.CompileRule(family, nft.Rule{Text: text}, scope)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := rule.DumpSets() + rule.Dump(); got != want[i] || got == "" {
			t.Errorf("%s\n--- nft\n%s+++ ours\n%s", text, want[i], got)
		}
	}
}

// tableScope implements compile.Scope for a table.
type tableScope struct {
	decls  []string
	sets   map[string]*set.Set
	chains []string
}

func (s *tableScope) Set(name string) (*set.Set, bool) { set, ok := s.sets[name]; return set, ok }

func (s *tableScope) Chain(name string) bool { return slices.Contains(s.chains, name) }

func (s *tableScope) Object(nft.ObjectKind, string) bool { return false }

func (s *tableScope) Flowtable(string) bool { return false }

// declare compiles the sets and maps of a table, and writes them for nft.
func declare(t *testing.T, family nft.Family, table *weftv1.Table) *tableScope {
	t.Helper()
	s := &tableScope{sets: map[string]*set.Set{}}
	add := func(kind string, d *weftv1.Set, set *set.Set, err error) {
		if err != nil {
			t.Fatal(err)
		}
		s.sets[d.GetName()] = set
		text := kind + " " + d.GetName() + " {\n"
		if d.GetTypeof() != "" {
			text += "typeof " + d.GetTypeof() + "\n"
		} else {
			text += "type " + d.GetType() + "\n"
		}
		if len(d.GetFlags()) > 0 {
			text += "flags " + strings.Join(d.GetFlags(), ", ") + "\n"
		}
		s.decls = append(s.decls, text+"}")
	}
	for _, d := range table.GetSets() {
		set, err := set.Compile(family, &nft.Set{Name: d.GetName(), Type: d.GetType(), TypeOf: d.GetTypeof(), Flags: d.GetFlags()})
		add("set", d, set, err)
	}
	for _, d := range table.GetMaps() {
		set, err := set.CompileMap(family, &nft.Map{Name: d.GetName(), Type: d.GetType(), TypeOf: d.GetTypeof(), Flags: d.GetFlags()})
		add("map", d, set, err)
	}
	return s
}
