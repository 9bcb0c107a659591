package demo

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/aggregator/admission"
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
	must(t, err)
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

func prefixes(texts ...string) (out []netip.Prefix) {
	for _, text := range texts {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

// rendered are the snapshots of the services frontend.
func rendered(t *testing.T) map[string]*weftv1.Fragment {
	t.Helper()
	node := &model.Node{Known: true, Name: "n1", Addresses: [model.NumFamilies]netip.Addr{
		netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1"),
	}}
	out := map[string]*weftv1.Fragment{}
	for name, tt := range map[string]struct {
		cfg  func(*render.Config)
		node *model.Node
	}{
		"addresses of the node": {node: node, cfg: func(*render.Config) {}},
		"any local address, several cluster CIDRs": {cfg: func(c *render.Config) {
			c.Detect.CIDRs = prefixes("10.244.0.0/16", "10.250.0.0/15", "fd00:10:244::/56", "fd00:10:250::/56")
		}},
		"prefixes for NodePorts, lowest mark bit": {cfg: func(c *render.Config) {
			c.NodePortAddresses, c.MasqueradeBit = model.NodePorts(prefixes("192.0.2.0/24", "2001:db8::/64")...), 0
		}},
		"all NodePort addresses, highest mark bit": {cfg: func(c *render.Config) {
			c.NodePortAddresses, c.MasqueradeBit = model.NodePorts(prefixes("0.0.0.0/0", "::/0")...), 31
		}},
		"no prefix of a family, masquerade all": {cfg: func(c *render.Config) {
			c.NodePortAddresses, c.MasqueradeAll = model.NodePorts(prefixes("192.0.2.0/24")...), true
		}},
		"no cluster CIDR":  {cfg: func(c *render.Config) { c.Detect.CIDRs = nil }},
		"single addresses": {cfg: func(c *render.Config) { c.Detect.CIDRs = prefixes("10.244.0.1/32", "fd00:10:244::1/128") }},
	} {
		cfg := render.Config{
			Families: [model.NumFamilies]bool{true, true}, MasqueradeBit: render.DefaultMasqueradeBit,
			Detect: render.Detect{CIDRs: prefixes("10.244.0.0/16", "fd00:10:244::/56")},
		}
		tt.cfg(&cfg)
		r, err := render.New(cfg)
		must(t, err)
		r.Update(model.Changes{Services: dualStack(), Node: tt.node})
		out[name] = r.Snapshot()
	}
	return out
}

// dualStack are dual-stack Services without and with endpoints, on all protocols and with NodePorts.
func dualStack() []model.Change {
	var out []model.Change
	for i := range 3 {
		name := model.Key{Namespace: "default", Name: fmt.Sprintf("s%d", i)}
		s := &model.Service{Name: name, ClusterIPs: [model.NumFamilies]netip.Addr{
			netip.AddrFrom4([4]byte{10, 96, 0, byte(i + 1)}),
			netip.AddrFrom16([16]byte{0xfd, 0, 0, 0x10, 15: byte(i + 1)}),
		}}
		for p, protocol := range []model.Protocol{model.TCP, model.UDP, model.SCTP} {
			port := model.Port{
				Name: protocol.String(), Protocol: protocol, Number: 80,
				ClusterIPs: s.ClusterIPs, NodePort: uint16(30000 + 3*i + p),
			}
			for f, text := range []string{"10.244.0.1", "fd00:10:244::1"} {
				var all []model.Endpoint
				for addr := netip.MustParseAddr(text); len(all) < i; addr = addr.Next() {
					all = append(all, model.Endpoint{Addr: netip.AddrPortFrom(addr, 8080), Local: len(all) == 0})
				}
				port.Backends[f].Cluster = model.MakeEndpoints(all...)
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
	must(t, err)
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
	for i, d := range slices.Concat(table.GetSets(), table.GetMaps()) {
		isMap := i >= len(table.GetSets())
		compiled, err := convert.CompileSet(family, d, isMap)
		must(t, err)
		s.sets[d.GetName()] = compiled
		typ := "type " + d.GetType()
		if d.GetTypeof() != "" {
			typ = "typeof " + d.GetTypeof()
		}
		if len(d.GetFlags()) > 0 {
			typ += "\nflags " + strings.Join(d.GetFlags(), ", ")
		}
		s.decls = append(s.decls, fmt.Sprintf("%s %s {\n%s\n}", admission.SetKind(isMap), d.GetName(), typ))
	}
	return s
}
