package takeover

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
)

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
	for _, dir := range []string{"self/ns", "self/net", "7/ns", "8/ns"} {
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
	if want := "kube-proxy runs (process 7) and will write its rules again"; !strings.Contains(notices, want) {
		t.Errorf("no %q in:\n%s", want, notices)
	}
	t.Setenv("PATH", t.TempDir())
	tables, legacy, err := surveyLegacy(t.Context(), proc)
	if err != nil || len(tables) > 0 || len(legacy) != 1 || !strings.Contains(legacy[0], "iptables-legacy-save is not installed here") {
		t.Errorf("without its programs: %v, %q, %v", tables, legacy, err)
	}
}

// TestServes: only chains of Services need weft's rules in their family.
func TestServes(t *testing.T) {
	for _, test := range []struct {
		removal kernel.Removal
		want    bool
	}{
		{kernel.Removal{Whole: true}, true},
		{kernel.Removal{Flush: []string{"KUBE-SERVICES", "KUBE-SVC-A"}}, true},
		{kernel.Removal{Flush: []string{"KUBE-SERVICES", "KUBE-POSTROUTING"}}, false},
	} {
		if got := (plan{removal: test.removal}).serves(); got != test.want {
			t.Errorf("%+v: %t, want %t", test.removal, got, test.want)
		}
	}
}
