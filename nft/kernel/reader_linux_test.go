package kernel

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/eval"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/object"
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
	forward := nfttest.Must(r.Rules(f.ID, f.Chains[0].Name))
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
	ns := nfttest.New(t)
	ns.Nft(t, readRules)
	r := openReader(t, ns)
	programs := nfttest.Must(r.Programs())
	table := nft.TableID{Family: nft.FamilyInet, Name: "f"}
	found, missing := 0, 0
	for _, s := range programs[0].Sets {
		all := nfttest.Must(r.Elements(table, s.Decl))
		index := eval.NewSet(s.Decl, all)
		for _, e := range all {
			for _, key := range []string{e.Key, neighbour(e.Key, -1), neighbour(e.Key, 1), e.KeyEnd, neighbour(e.KeyEnd, 1)} {
				if key == "" {
					continue
				}
				got, ok, err := r.Element(table, s.Decl, key)
				if err != nil {
					t.Fatal(err)
				}
				want, exists, _ := index.Elements.Find(key)
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

// openReader opens a Reader in a namespace.
func openReader(t *testing.T, ns *nfttest.NS) *Reader {
	t.Helper()
	r := nfttest.Must(OpenReader(Config{NetNS: ns.FD()}))
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// TestDumpLiveLimit reads no more elements than are asked for, of all sets together.
func TestDumpLiveLimit(t *testing.T) {
	c := open(t, nfttest.New(t), Config{})
	table := nft.TableID{Family: nft.FamilyInet, Name: "weft"}
	ops, sets := []Op{AddTable{Table: table}}, []*set.Set(nil)
	for name, ports := range map[string][]string{"a": {"1", "2", "3"}, "b": {"4"}, "empty": nil} {
		decl := nfttest.Must(set.Compile(nft.FamilyInet, &nft.Set{Name: name, Type: "inet_service", Flags: []string{"timeout"}}))
		add := AddElements{Table: table, Set: decl}
		for _, port := range ports {
			e := nfttest.Must(decl.Pack(nft.Element{Key: port, Timeout: time.Hour}))
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
		live := nfttest.Must(c.DumpLive(table, LiveQuery{Sets: sets, Limit: test.limit}))
		for i, name := range []string{"a", "b", "empty"} {
			if e := live.Elements[name]; len(e.Elements) != test.n[i] || e.More != test.more[i] {
				t.Errorf("limit %d: set %s has %d elements, more %t: want %d, %t", test.limit, name, len(e.Elements), e.More, test.n[i], test.more[i])
			}
		}
	}
}

// TestDumpLive reads handles, and counts of objects and rules.
func TestDumpLive(t *testing.T) {
	c := open(t, nfttest.New(t), Config{})
	commit(t, c, opsOf(`table inet weft {
		counter web { packets 3 bytes 180; };
		chain in { };
	}`)...)
	table := nft.TableID{Family: nft.FamilyInet, Name: "weft"}
	blocked := nfttest.Must(set.Compile(nft.FamilyInet, &nft.Set{Name: "blocked", Type: "ipv4_addr"}))
	counting, plain := &Handle{}, &Handle{}
	commit(t, c, AddSet{Table: table, Set: blocked},
		AddRule{Table: table, Chain: "in", Rule: ruleOf("counter packets 7 bytes 420 quota over 1 mbytes counter", ""), Handle: counting},
		AddRule{Table: table, Chain: "in", Rule: ruleOf("accept", ""), Handle: plain})
	live := nfttest.Must(c.DumpLive(table, LiveQuery{Rules: true}))
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

// TestDumpOfNone asks for tables and sets that are missing, or belong to another program.
func TestDumpOfNone(t *testing.T) {
	ns, c := connect(t, Config{})
	ns.Nft(t, "table ip foreign { counter c { }; set s { type ipv4_addr; elements = { 10.0.0.1 }; }; }")
	commit(t, c, AddTable{Table: testTable()})
	s := setOf(nft.Set{Name: "s", Type: "ipv4_addr"})
	for _, name := range []string{"foreign", "missing", testTable().Name} {
		id := nft.TableID{Family: nft.FamilyIP, Name: name}
		got, err := c.DumpSet(id, s)
		if !errors.Is(err, unix.ENOENT) || errors.Is(err, ErrForeignTable) != (name == "foreign") || len(got) != 0 {
			t.Errorf("DumpSet of %s = %v, %v, want ENOENT, and ErrForeignTable of a table that is not weft's", name, got, err)
		}
		if name == testTable().Name {
			continue // the table is there, and its set is not
		}
		if live, err := c.DumpLive(id, LiveQuery{Rules: true}); !errors.Is(err, unix.ENOENT) {
			t.Errorf("DumpLive of %s: got %v, error %v: want ENOENT", name, live, err)
		}
	}
}
