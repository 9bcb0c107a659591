package kernel

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// foreignRules is a table that weft did not create. It has one jump of each kind, and data
// that looks like one.
const foreignRules = `table ip nat {
	map m { type ipv4_addr : verdict; }
	chain a { counter; }
	chain b { ip daddr 10.0.0.1 tcp dport 80 counter goto a; }
	chain pre {
		type nat hook prerouting priority dstnat; policy accept;
		ip saddr 10.0.0.0/8 meta mark set 0x4000 jump b
		ip saddr vmap @m
		accept
		dnat to 10.0.0.2
	}
}
table ip6 nat { chain a { counter; }; }`

// TestSurvey reads the chains of a foreign table and the targets of its rules.
func TestSurvey(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	ns.Nft(t, foreignRules)
	c := open(t, ns, Config{})
	s, err := c.Survey(nft.TableID{Family: nft.FamilyIP, Name: "nat"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, chain := range s.Chains {
		line := chain.Name
		if chain.Base != nil {
			line += " " + chain.Base.Type
		}
		for _, r := range chain.Rules {
			if r.Handle == 0 {
				t.Errorf("chain %s: a rule without a handle", chain.Name)
			}
			line += " ->" + r.Target
		}
		got = append(got, line)
	}
	if want := "a ->|b ->a|pre nat ->b -> -> ->"; strings.Join(got, "|") != want || s.Ours {
		t.Errorf("survey: %s, ours %t; want %s, false", strings.Join(got, "|"), s.Ours, want)
	}
	if s, err := c.Survey(nft.TableID{Family: nft.FamilyIP, Name: "none"}); s != nil || err != nil {
		t.Errorf("table that is not there: %v, %v", s, err)
	}
	commit(t, c, AddTable{Table: testTable()})
	if s, err := c.Survey(testTable()); err != nil || !s.Ours {
		t.Errorf("weft's own table: %+v, %v", s, err)
	}
}

// TestRemoveForeign removes the named objects and no others, or nothing.
func TestRemoveForeign(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	ns.Nft(t, foreignRules)
	c := open(t, ns, Config{})
	id := nft.TableID{Family: nft.FamilyIP, Name: "nat"}
	before := ns.ListRuleset(t)
	err := c.RemoveForeign(Removal{Table: id, Flush: []string{"b"}, Chains: []string{"b"}})
	if !errors.Is(err, unix.EBUSY) || !strings.Contains(err.Error(), "delete chain ip nat b") {
		t.Errorf("chain in use: %v, want EBUSY that names it", err)
	}
	if after := ns.ListRuleset(t); after != before {
		t.Errorf("a refused removal changed something:\n%s", after)
	}
	commit(t, c, AddTable{Table: testTable()})
	if err := c.RemoveForeign(Removal{Table: testTable(), Whole: true}); !errors.Is(err, ErrOurs) {
		t.Errorf("weft's own table: %v, want ErrOurs", err)
	}
	s, err := c.Survey(id)
	if err != nil {
		t.Fatal(err)
	}
	var jump RemovalRule
	for _, chain := range s.Chains {
		for _, r := range chain.Rules {
			if r.Target == "b" {
				jump = RemovalRule{Chain: chain.Name, Handle: r.Handle}
			}
		}
	}
	err = c.RemoveForeign(
		Removal{Table: id, Rules: []RemovalRule{jump}, Flush: []string{"a", "b"}, Chains: []string{"b"}},
		Removal{Table: nft.TableID{Family: nft.FamilyIP6, Name: "nat"}, Whole: true})
	if err != nil {
		t.Fatal(err)
	}
	after := ns.ListRuleset(t)
	contains(t, after, "chain a", "ip saddr vmap @m", "dnat to 10.0.0.2", "table ip weft")
	for _, gone := range []string{"chain b", "jump b", "counter", "table ip6"} {
		if strings.Contains(after, gone) {
			t.Errorf("%q is still there:\n%s", gone, after)
		}
	}
}
