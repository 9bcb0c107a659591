package kernel

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestDumpLiveLimit reads no more elements than are asked for, of all sets together.
func TestDumpLiveLimit(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces)
	c := open(t, nfttest.New(t), Config{})
	table := nft.TableID{Family: nft.FamilyInet, Name: "weft"}
	ops, sets := []Op{AddTable{Table: table}}, []*set.Set(nil)
	for name, ports := range map[string][]string{"a": {"1", "2", "3"}, "b": {"4"}, "empty": nil} {
		decl, err := set.Compile(nft.FamilyInet, &nft.Set{Name: name, Type: "inet_service", Flags: []string{"timeout"}})
		if err != nil {
			t.Fatal(err)
		}
		add := AddElements{Table: table, Set: decl}
		for _, port := range ports {
			e, err := decl.Pack(nft.Element{Key: port, Timeout: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			add.Elements = append(add.Elements, e)
		}
		ops, sets = append(ops, AddSet{Table: table, Set: decl}, add), append(sets, decl)
	}
	commit(t, c, ops...)
	slices.SortFunc(sets, func(a, b *set.Set) int { return strings.Compare(a.Name, b.Name) })
	for _, test := range []struct {
		limit int
		n     [3]int
		more  [3]bool
	}{
		{2, [3]int{2, 0, 0}, [3]bool{true, true, false}},
		{3, [3]int{3, 0, 0}, [3]bool{false, true, false}},
		{9, [3]int{3, 1, 0}, [3]bool{}},
	} {
		live, err := c.DumpLive(table, LiveQuery{Sets: sets, Limit: test.limit})
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"a", "b", "empty"} {
			if e := live.Elements[name]; len(e.Elements) != test.n[i] || e.More != test.more[i] {
				t.Errorf("limit %d: set %s has %d elements, more %t: want %d, %t", test.limit, name, len(e.Elements), e.More, test.n[i], test.more[i])
			}
		}
	}
}

// TestDumpLive reads handles, and counts of objects and rules.
func TestDumpLive(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces)
	c := open(t, nfttest.New(t), Config{})
	commit(t, c, opsOf(t, `table inet weft {
		counter web { packets 3 bytes 180; };
		chain in { };
	}`)...)
	table := nft.TableID{Family: nft.FamilyInet, Name: "weft"}
	blocked, err := set.Compile(nft.FamilyInet, &nft.Set{Name: "blocked", Type: "ipv4_addr"})
	if err != nil {
		t.Fatal(err)
	}
	counting, plain := &Handle{}, &Handle{}
	commit(t, c, AddSet{Table: table, Set: blocked},
		AddRule{Table: table, Chain: "in", Rule: ruleOf(t, "counter packets 7 bytes 420 quota over 1 mbytes counter", ""), Handle: counting},
		AddRule{Table: table, Chain: "in", Rule: ruleOf(t, "accept", ""), Handle: plain})
	live, err := c.DumpLive(table, LiveQuery{Rules: true})
	if err != nil {
		t.Fatal(err)
	}
	if live.Chains["in"] == 0 || live.Sets["blocked"] == 0 || len(live.Flowtables) != 0 {
		t.Errorf("handles of chains %v, sets %v, flowtables %v", live.Chains, live.Sets, live.Flowtables)
	}
	web := live.Objects[object.Ref{Kind: nft.ObjectCounter, Name: "web"}]
	if web.Handle == 0 || web.Text != "packets 3 bytes 180" {
		t.Errorf("counter web is %+v", web)
	}
	want := []string{"counter packets 7 bytes 420", "quota over 1 mbytes", "counter packets 0 bytes 0"}
	if got := live.Rules[counting.N]; !slices.Equal(got, want) || len(live.Rules) != 1 {
		t.Errorf("rules have counted %v, want %v for %d", live.Rules, want, counting.N)
	}
}

// TestDumpLiveOfNone asks for tables that are missing or belong to another program.
func TestDumpLiveOfNone(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	c := open(t, ns, Config{})
	ns.Nft(t, "table ip foreign { counter c { }; }")
	for _, name := range []string{"foreign", "missing"} {
		if live, err := c.DumpLive(nft.TableID{Family: nft.FamilyIP, Name: name}, LiveQuery{Rules: true}); !errors.Is(err, unix.ENOENT) {
			t.Errorf("%s: got %v, error %v: want ENOENT", name, live, err)
		}
	}
}
