package takeover

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// peerRules are what kube-proxy leaves in nftables and iptables mode, and what
// others have beside it.
const peerRules = `
table ip kube-proxy { chain services { }; }
table ip nat {
	chain KUBE-SEP-X { dnat to 10.0.0.1; }
	chain KUBE-SVC-X { goto KUBE-SEP-X; }
	chain KUBE-SERVICES { jump KUBE-SVC-X; }
	chain KUBE-MARK-MASQ { meta mark set 0x4000; }
	chain KUBE-MARK-DROP { meta mark set 0x8000; }
	chain CNI { jump KUBE-MARK-MASQ; }
	chain PREROUTING { type nat hook prerouting priority dstnat; jump KUBE-SERVICES; jump CNI; }
	chain OUTPUT { type nat hook output priority -100; jump KUBE-SERVICES; }
}
table ip filter {
	chain KUBE-FIREWALL { drop; }
	chain INPUT { type filter hook input priority filter; jump KUBE-FIREWALL; }
}
table ip mangle { chain KUBE-KUBELET-CANARY { }; }
table ip KUBE-SERVICES { chain KUBE-SERVICES { drop; }; }
`

// liveTable makes weft's table for Services, as far as it counts here.
func liveTable(t *testing.T, ns *nfttest.NS) {
	t.Helper()
	c, err := kernel.Open(kernel.Config{NetNS: ns.FD()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	id := weftTable(nft.FamilyIP)
	rule, err := compile.CompileRule(nft.FamilyIP, nft.Rule{Text: "counter"}, nothing{})
	if err != nil {
		t.Fatal(err)
	}
	chain, err := object.CompileChain(nft.FamilyIP, &nft.Chain{Name: "nat-prerouting", Type: "nat", Hook: "prerouting", Priority: "dstnat"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Commit([]kernel.Op{
		kernel.AddTable{Table: id}, kernel.AddChain{Table: id, Chain: chain},
		kernel.AddRule{Table: id, Chain: chain.Name, Rule: rule, Handle: &kernel.Handle{}},
	})
	if err != nil {
		t.Fatalf("%+v", err)
	}
}

// nothing is a scope without sets and chains.
type nothing struct{}

func (nothing) Set(string) (*set.Set, bool)        { return nil, false }
func (nothing) Chain(string) bool                  { return false }
func (nothing) Object(nft.ObjectKind, string) bool { return false }
func (nothing) Flowtable(string) bool              { return false }

// TestRemove removes kube-proxy's rules and leaves those of others, once weft's are live.
//
// Behaviour: 140.
func TestRemove(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	ns.Nft(t, peerRules)
	cfg := Config{NetNS: ns.FD(), Proc: t.TempDir()}
	before := ns.ListRuleset(t)
	if _, err := Remove(t.Context(), cfg); !errors.Is(err, errNotLive) {
		t.Fatalf("without weft: %v, want errNotLive", err)
	}
	if after := ns.ListRuleset(t); after != before {
		t.Errorf("a refused removal changed something:\n%s", after)
	}
	liveTable(t, ns)
	report, err := Remove(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	want := "table ip kube-proxy|4 chains of iptables table ip nat, and 2 jumps to them"
	if got := strings.Join(report.Removed, "|"); got != want {
		t.Errorf("removed %s, want %s", got, want)
	}
	if len(report.Notices) != 1 || !strings.Contains(report.Notices[0], "chain CNI, which is not kube-proxy's, jumps to it") {
		t.Errorf("notices: %q", report.Notices)
	}
	after := ns.ListRuleset(t)
	for _, gone := range []string{"ip kube-proxy", "KUBE-SVC-X", "KUBE-SEP-X", "jump KUBE-SERVICES", "0x00004000"} {
		if strings.Contains(after, gone) {
			t.Errorf("%q is still there:\n%s", gone, after)
		}
	}
	for _, kept := range []string{
		"table ip KUBE-SERVICES", "KUBE-KUBELET-CANARY", "jump KUBE-FIREWALL", "0x00008000", "jump CNI", "jump KUBE-MARK-MASQ", "table ip weft",
	} {
		if !strings.Contains(after, kept) {
			t.Errorf("%q is gone:\n%s", kept, after)
		}
	}
	report, err = Remove(t.Context(), cfg)
	if err != nil || len(report.Removed)+len(report.Notices) > 0 {
		t.Errorf("the second time: %+v, %v", report, err)
	}
}

// TestRemoveByForce needs no weft.
func TestRemoveByForce(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	ns.Nft(t, peerRules)
	report, err := Remove(t.Context(), Config{NetNS: ns.FD(), Proc: t.TempDir(), Force: true})
	if err != nil || len(report.Removed) != 2 {
		t.Errorf("by force: %+v, %v", report, err)
	}
}

// TestParseLegacy finds the chains and jumps in what iptables-save prints.
func TestParseLegacy(t *testing.T) {
	l := legacyTable{name: "nat", program: "iptables-legacy"}
	p := l.plan(nft.FamilyIP, `*nat
:PREROUTING ACCEPT [1:2]
:KUBE-SERVICES - [0:0]
:KUBE-EXT-A - [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-MARK-DROP - [0:0]
:CNI - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals -j KUBE-NODEPORTS" -j KUBE-SERVICES
-A PREROUTING -d 10.0.0.1/32 -j CNI
-A PREROUTING -m comment --comment "-j KUBE-SERVICES" -j ACCEPT
-A CNI -j KUBE-MARK-MASQ
-A KUBE-EXT-A -j KUBE-MARK-MASQ
-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
COMMIT
`)
	if got, want := strings.Join(p.removal.Flush, " "), "KUBE-SERVICES KUBE-EXT-A KUBE-MARK-MASQ"; got != want {
		t.Errorf("chains %s, want %s", got, want)
	}
	if r := p.removal.Rules; len(r) != 1 || !strings.Contains(l.rules[r[0].Handle], "service portals") {
		t.Errorf("jumps: %v of %q", r, l.rules)
	}
	if n := p.notices; len(n) != 1 || !strings.Contains(n[0], "KUBE-MARK-MASQ of table iptables-legacy nat") {
		t.Errorf("notices: %q", n)
	}
}

// TestNotices: what is not removed is at least named.
func TestNotices(t *testing.T) {
	proc := t.TempDir()
	for _, dir := range []string{"self/ns", "self/net", "7/ns", "8/ns", "sys/net/ipv4/conf/kube-ipvs0"} {
		if err := os.MkdirAll(filepath.Join(proc, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"self/ns/net": "net:[1]", "7/ns/net": "net:[1]", "8/ns/net": "net:[2]"} {
		if err := os.Symlink(to, filepath.Join(proc, link)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"7/comm": "kube-proxy\n", "8/comm": "kube-proxy\n", "self/net/ip_tables_names": "nat\n", "self/net/ip6_tables_names": ""} {
		if err := os.WriteFile(filepath.Join(proc, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	notices := strings.Join(look(proc), "\n")
	for _, want := range []string{"kube-proxy runs (process 7) and will write its rules again", "ipvsadm --clear"} {
		if !strings.Contains(notices, want) {
			t.Errorf("no %q in:\n%s", want, notices)
		}
	}
	t.Setenv("PATH", t.TempDir())
	tables, legacy, err := surveyLegacy(t.Context(), proc)
	if err != nil || len(tables) > 0 || len(legacy) != 1 || !strings.Contains(legacy[0], "iptables-legacy-save is not installed here") {
		t.Errorf("without its programs: %v, %q, %v", tables, legacy, err)
	}
}
