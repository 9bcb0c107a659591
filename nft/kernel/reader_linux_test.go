package kernel

import (
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// readRules has each kind of set, and rules of another program.
const readRules = `table inet f {
	set exact { type ipv4_addr . inet_service; elements = { 10.0.0.1 . 80, 10.0.0.2 . 443 comment "two" }; }
	set plain { type ipv4_addr; flags interval; elements = { 10.0.0.0/30, 10.0.0.8-10.0.0.11, 192.0.2.0/24 }; }
	set joined { type ipv4_addr . inet_service; flags interval; elements = { 10.0.0.0/30 . 80-90, 10.0.1.0/24 . 53 }; }
	map catchall { type inet_service : verdict; elements = { 80 : accept, * : drop }; }
	chain c {
		type filter hook forward priority 5; policy drop;
		ip daddr . tcp dport @exact counter comment "one"
		tcp dport { 22, 80 } log prefix "x" accept
	}
}
table ip nat { chain p { type nat hook postrouting priority srcnat; masquerade fully-random; }; }`

func TestReaderPrograms(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	ns.Nft(t, readRules)
	commit(t, open(t, ns, Config{}), AddTable{Table: testTable()})
	r := openReader(t, ns)
	programs, err := r.Programs()
	if err != nil || len(programs) != 3 {
		t.Fatalf("%d tables, %v, want 3", len(programs), err)
	}
	f, nat := programs[0], programs[1]
	if f.Ours || f.ID.String() != "inet f" || !programs[2].Ours || len(f.Sets) != 5 {
		t.Errorf("tables %+v, want inet f of another program with 5 sets, and one of weft's", programs)
	}
	base := f.Chains[0].Base
	if base == nil || base.Priority != 5 || !base.Drop || base.Hook != 2 {
		t.Errorf("base chain %+v, want forward, 5, drop", base)
	}
	var got []string
	forward, err := r.Rules(f.ID, f.Chains[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	translate, err := r.Rules(nat.ID, nat.Chains[0].Name)
	if err != nil || len(forward) != 2 || len(translate) != 1 {
		t.Fatalf("%d and %d rules, %v, want 2 and 1", len(forward), len(translate), err)
	}
	if none, err := r.Rules(f.ID, "none"); err != nil || len(none) != 0 {
		t.Errorf("%d rules of a chain that does not exist, %v", len(none), err)
	}
	for _, rule := range slices.Concat(forward, translate) {
		if rule.Handle == 0 {
			t.Errorf("rule without a handle: %+v", rule)
		}
		for _, e := range rule.Exprs {
			got = append(got, expr.Format(e))
		}
		got = append(got, rule.Info.Comment+";")
	}
	for _, want := range []string{"lookup reg 1 set exact", "one;", "lookup reg 1 set __set0", "log prefix x level 4", "masq flags 0x10"} {
		if !slices.Contains(got, want) {
			t.Errorf("expressions %s, want %q among them", strings.Join(got, " | "), want)
		}
	}
}

// TestReaderElement asks for every key of a set and its neighbours, and compares the answer with
// the whole set.
func TestReaderElement(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	ns.Nft(t, readRules)
	r := openReader(t, ns)
	programs, err := r.Programs()
	if err != nil {
		t.Fatal(err)
	}
	table := nft.TableID{Family: nft.FamilyInet, Name: "f"}
	found, missing := 0, 0
	for _, s := range programs[0].Sets {
		all, err := r.Elements(table, s.Decl)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			for _, key := range []string{e.Key, neighbour(e.Key, -1), neighbour(e.Key, 1), e.KeyEnd, neighbour(e.KeyEnd, 1)} {
				if key == "" {
					continue
				}
				got, ok, err := r.Element(table, s.Decl, key)
				if err != nil {
					t.Fatal(err)
				}
				want, exists := search(s.Decl, all, key)
				if got.KeyEnd == "" {
					want.KeyEnd = ""
				}
				if ok != exists || got != want {
					t.Errorf("set %s, key %x: %+v, %v, want %+v, %v", s.Decl.Name, key, got, ok, want, exists)
				}
				if found++; !ok {
					missing++
				}
			}
		}
	}
	if found < 40 || missing < 10 {
		t.Errorf("%d keys, %d missing: want 40 and 10", found, missing)
	}
	if _, _, err := r.Element(table, &set.Set{Name: "none"}, "x"); err != nil {
		t.Errorf("a set that does not exist: %v, want no element", err)
	}
}

// neighbour returns a key with another last byte before the padding.
func neighbour(key string, by int) string {
	if key == "" {
		return ""
	}
	b := []byte(key)
	at := min(len(b), 4) - 1 // the address of a concatenation
	b[at] += byte(by)
	return string(b)
}

// search finds the element of a key by comparing it with all.
func search(s *set.Set, all []set.Element, key string) (found set.Element, ok bool) {
	for _, e := range all {
		switch {
		case e.Key == "" && !ok:
			found, ok = e, true
		case e.Key == "" || e.KeyEnd == "" && e.Key != key:
		case e.KeyEnd == "" || inside(s, e, key):
			return e, true
		}
	}
	return found, ok
}

// inside reports whether a key is in the ranges of an element.
func inside(s *set.Set, e set.Element, key string) bool {
	fields := s.Key.Fields
	if len(fields) == 0 {
		fields = []uint32{s.Key.Len}
	}
	at := 0
	for _, n := range fields {
		to := at + int(n)
		if key[at:to] < e.Key[at:to] || key[at:to] > e.KeyEnd[at:to] {
			return false
		}
		at += (int(n) + 3) &^ 3
	}
	return true
}

// openReader opens a Reader in a namespace.
func openReader(t *testing.T, ns *nfttest.NS) *Reader {
	t.Helper()
	r, err := OpenReader(Config{NetNS: ns.FD()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}
