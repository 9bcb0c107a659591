package kernel

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/declared"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
	"github.com/weft-proxy/weft/nft/userdata"
)

// modes runs a test with and without table ownership.
func modes(t *testing.T, f func(t *testing.T, cfg Config)) {
	t.Helper()
	t.Run("owner", func(t *testing.T) { f(t, Config{}) })
	t.Run("fallback", func(t *testing.T) { f(t, Config{NoOwner: true}) })
}

func TestCommitListsAsWritten(t *testing.T) {
	modes(t, func(t *testing.T, cfg Config) {
		ns, c := connect(t, cfg)
		id := testTable()
		services := mapOf(nft.Map{Name: "services", TypeOf: "ip daddr . meta l4proto . th dport : verdict", Comment: "VIPs"})
		endpoints := mapOf(nft.Map{Name: "endpoints", TypeOf: "ip daddr . meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport"})
		vip := pack(services, "10.96.0.1 . tcp . 80 : goto pick-3")
		vip[0].Comment = "default/web:http"
		head := &Handle{}
		long, owner := strings.Repeat("r", userdata.MaxComment), strings.Repeat("o", userdata.MaxOwner)
		stats := commit(t, c,
			AddTable{Table: id, Comment: "made by weft"},
			AddSet{Table: id, Set: services}, AddSet{Table: id, Set: endpoints},
			AddChain{Table: id, Chain: chain("pick-3")},
			AddChain{Table: id, Chain: &object.Chain{Name: "nat-prerouting", Comment: "entry", Base: &object.Base{Type: "nat", Hook: 0, Priority: -100}}},
			AddChain{Table: id, Chain: &object.Chain{Name: "filter", Base: &object.Base{Type: "filter", Hook: 2, Priority: 10, Drop: true}}},
			AddElements{Table: id, Set: services, Elements: vip},
			AddElements{Table: id, Set: endpoints, Elements: pack(endpoints,
				"10.96.0.1 . tcp . 80 . 0 : 10.1.0.1 . 8080", "10.96.0.1 . tcp . 80 . 1 : 10.1.0.2 . 8080")},
			AddRule{Table: id, Chain: "pick-3", Rule: ruleOf("meta l4proto { tcp, udp } counter packets 0 bytes 0 accept", long), Owner: owner, Handle: head},
		)
		if stats.Elements != 3 || stats.Bytes == 0 || stats.Messages != 13 {
			t.Errorf("stats = %+v, want 3 elements in 13 messages", stats)
		}
		if head.N == 0 {
			t.Error("the rule has no handle")
		}
		list := ns.ListRuleset(t)
		contains(t, list,
			`comment "made by weft"`, `comment "VIPs"`, `comment "entry"`,
			"typeof ip daddr . meta l4proto . th dport : verdict",
			`elements = { 10.96.0.1 . tcp . 80 comment "default/web:http" : goto pick-3 }`,
			"10.96.0.1 . tcp . 80 . 0 : 10.1.0.1 . 8080", "10.96.0.1 . tcp . 80 . 1 : 10.1.0.2 . 8080",
			"type nat hook prerouting priority dstnat; policy accept;",
			"type filter hook forward priority filter + 10; policy drop;",
			`meta l4proto { tcp, udp } counter packets 0 bytes 0 accept comment "`+long+`"`,
		)
		if owned := strings.Contains(list, "flags owner"); owned != c.Owner() {
			t.Errorf("flags owner listed = %v, want %v:\n%s", owned, c.Owner(), list)
		}
		commit(t, c, DeleteRule{Table: id, Chain: "pick-3", Handle: head}, FlushSet{Table: id, Name: "services"},
			DeleteSet{Table: id, Name: "services"}, DeleteChain{Table: id, Name: "pick-3"})
		if list := ns.ListRuleset(t); strings.Contains(list, "pick-3") || strings.Contains(list, "map services") {
			t.Errorf("deleted objects are still listed:\n%s", list)
		}
		commit(t, c, DeleteTable{Table: id})
		if list := ns.ListRuleset(t); list != "" {
			t.Errorf("ruleset after the table's end:\n%s", list)
		}
	})
}

func TestCommitNothing(t *testing.T) {
	c := open(t, nfttest.New(t), Config{})
	before := nfttest.Must(c.Generation())
	if stats, err := c.Commit(nil); err != nil || stats != (Stats{}) {
		t.Errorf("Commit(nil) = %+v, %v", stats, err)
	}
	if after, err := c.Generation(); err != nil || after != before {
		t.Errorf("generation %d, %v after nothing, want %d", after, err, before)
	}
}

// TestDeleteIntervals deletes intervals whose neighbours stay.
func TestDeleteIntervals(t *testing.T) {
	ns, c := connect(t, Config{})
	table := declared.Parse(`table ip weft {
		set blocked { type ipv4_addr; flags interval; elements = { 10.0.0.0/8, 11.0.0.0/8, 192.168.1.1, 192.168.1.2, 224.0.0.0/3, 0.0.0.0/32 }; }
		set sources { type ipv4_addr . inet_service; flags interval; elements = { 10.0.0.0/8 . 80, 192.168.0.1-192.168.0.9 . 1024-2048 }; }
		map zones { type inet_service : ipv4_addr; flags interval; elements = { 1-1023 : 10.0.0.1, 1024-65535 : 10.0.0.2 }; }
	}`)[0]
	commit(t, c, opsOfTable(table)...)
	id, blocked, sources, zones := testTable(), table.Sets["blocked"], table.Sets["sources"], table.Sets["zones"]
	commit(t, c,
		DeleteElements{Table: id, Set: blocked, Elements: pack(blocked, "11.0.0.0/8", "224.0.0.0/3", "192.168.1.1")},
		DeleteElements{Table: id, Set: sources, Elements: pack(sources, "10.0.0.0/8 . 80")},
		DeleteElements{Table: id, Set: zones, Elements: pack(zones, "1-1023 : 10.0.0.1")})
	contains(t, ns.ListRuleset(t), "elements = { 0.0.0.0, 10.0.0.0/8,\n\t\t\t     192.168.1.2 }",
		"elements = { 192.168.0.1-192.168.0.9 . 1024-2048 }", "elements = { 1024-65535 : 10.0.0.2 }")
}

// loadEndpoints returns the map of endpoints and n elements.
func loadEndpoints(n int) (*set.Set, []set.Element) {
	s := mapOf(nft.Map{Name: "endpoints", TypeOf: "ip daddr . meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport"})
	elements := make([]set.Element, 0, n)
	for i := range n {
		svc, slot := i/10, i%10
		e := nfttest.Must(s.Pack(nft.Element{
			Key:   fmt.Sprintf("10.%d.%d.%d . tcp . 80 . %d", 96+svc>>16, svc>>8&255, svc&255, slot),
			Value: fmt.Sprintf("10.1.%d.%d . 8080", svc>>8&255, slot),
		}))
		elements = append(elements, e)
	}
	return s, elements
}

func TestManyElementsInChunks(t *testing.T) {
	ns, c := connect(t, Config{})
	id := testTable()
	s, elements := loadEndpoints(110_000)
	stats := commit(t, c, AddTable{Table: id}, AddSet{Table: id, Set: s}, AddElements{Table: id, Set: s, Elements: elements})
	if stats.Elements != len(elements) || stats.Messages < 70 {
		t.Errorf("stats = %+v, want %d elements in more than 70 messages", stats, len(elements))
	}
	start := time.Now()
	tables := nfttest.Must(c.Dump())
	t.Logf("dump of %d elements: %v", len(elements), time.Since(start))
	got := tables[0].Sets[0].Elements
	want := make(map[string]set.Element, len(elements))
	for _, e := range elements {
		want[e.Key] = e
	}
	for _, e := range got {
		if want[e.Key] != e {
			t.Fatalf("dumped element %+v, want %+v", e, want[e.Key])
		}
		delete(want, e.Key)
	}
	if len(want) != 0 || len(got) != len(elements) {
		t.Errorf("dumped %d elements, want %d, %d missing", len(got), len(elements), len(want))
	}
	// nft needs many seconds to list all of them.
	const rest = 10_000
	stats = commit(t, c, DeleteElements{Table: id, Set: s, Elements: elements[rest:]})
	if stats.Elements != len(elements)-rest {
		t.Errorf("stats of deletion = %+v", stats)
	}
	if tables = nfttest.Must(c.Dump()); len(tables[0].Sets[0].Elements) != rest {
		t.Fatalf("%d elements after the deletion", len(tables[0].Sets[0].Elements)) // and the hash table shrank
	}
	if list := ns.Run(t, "nft", "list", "map", "ip", "weft", "endpoints"); strings.Count(list, " . tcp . 80 . ") != rest {
		t.Errorf("nft lists %d elements, want %d", strings.Count(list, " . tcp . 80 . "), rest)
	}
}

func TestRejectedElementIsNamed(t *testing.T) {
	modes(t, func(t *testing.T, cfg Config) {
		ns, c := connect(t, cfg)
		id := testTable()
		set, elements := loadEndpoints(5000)
		commit(t, c, AddTable{Table: id}, AddSet{Table: id, Set: set}, AddElements{Table: id, Set: set, Elements: elements[:1]})
		before := ns.ListRuleset(t)
		elements[4321] = elements[0] // the same key
		elements[4321].Data = elements[1].Data
		elements[0], elements[1] = elements[1], elements[2]
		elements[1] = elements[3]
		ops := []Op{
			AddChain{Table: id, Chain: chain("ok")},
			AddElements{Table: id, Set: set, Elements: elements},
			DeleteChain{Table: id, Name: "missing"},
		}
		_, err := c.Commit(ops)
		var be *BatchError
		if !errors.As(err, &be) {
			t.Fatalf("Commit = %v, want a BatchError", err)
		}
		if be.Index != 1 || be.Element != 4321 || !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.EBUSY) {
			t.Errorf("BatchError index %d element %d errno %v, want op 1 element 4321", be.Index, be.Element, be.Errno)
		}
		if len(be.Errors) != 1 || be.Errors[0].Index != 2 || !errors.Is(be.Errors[0], unix.ENOENT) {
			t.Errorf("further errors = %v, want one about op 2", be.Errors)
		}
		contains(t, err.Error(), "add element ip weft endpoints { 10.96.0.0 . tcp . 80 . 0 : 10.1.0.1 . 8080 }", "and 1 more")
		contains(t, fmt.Sprintf("%+v", err), "delete chain ip weft missing: no such file or directory")
		if after := ns.ListRuleset(t); after != before {
			t.Errorf("the ruleset changed:\n%s", after)
		}
		commit(t, c, ops[0])
	})
}

func TestRejections(t *testing.T) {
	_, c := connect(t, Config{})
	id := testTable()
	s, elements := loadEndpoints(3)
	vmap := mapOf(nft.Map{Name: "services", Type: "ipv4_addr : verdict"})
	counters := mapOf(nft.Map{Name: "counters", Type: "ipv4_addr : counter"})
	commit(t, c, AddTable{Table: id}, AddSet{Table: id, Set: s}, AddSet{Table: id, Set: vmap}, AddElements{Table: id, Set: s, Elements: elements[:1]})
	bad := elements[0]
	bad.Key = bad.Key[1:]
	long := pack(vmap, "10.0.0.1 : drop")
	long[0].Comment = strings.Repeat("x", 129)
	for _, tt := range []struct {
		name    string
		op      Op
		element int
		is      error
		text    string
	}{
		{"missing chain of a verdict", AddElements{Table: id, Set: vmap, Elements: pack(vmap, "10.0.0.1 : accept", "10.0.0.2 : goto nowhere", "10.0.0.3 : drop")}, 1, unix.ENOENT, "10.0.0.2 : goto nowhere"},
		{"missing element", DeleteElements{Table: id, Set: s, Elements: elements[:2]}, 1, unix.ENOENT, "10.96.0.0 . tcp . 80 . 1"},
		{"missing chain of a rule", AddRule{Table: id, Chain: "nowhere", Rule: ruleOf("accept", "")}, -1, unix.ENOENT, "insert rule ip weft nowhere accept"},
		{"missing rule", DeleteRule{Table: id, Chain: "nowhere", Handle: &Handle{N: 99}}, -1, unix.ENOENT, "handle 99"},
		{"rule without handle", DeleteRule{Table: id, Chain: "nowhere", Handle: &Handle{}}, -1, nil, "no handle"},
		{"after nothing", AddRule{Table: id, Chain: "nowhere", Rule: ruleOf("accept", ""), After: &Handle{}}, -1, nil, "neither committed nor earlier"},
		{"missing set", DeleteSet{Table: id, Name: "nowhere"}, -1, unix.ENOENT, "delete set ip weft nowhere"},
		{"short key", AddElements{Table: id, Set: s, Elements: []set.Element{elements[1], bad}}, 1, nil, "key has 15 bytes: want 16"},
		{"long comment", AddElements{Table: id, Set: vmap, Elements: long}, 0, nil, "129 bytes"},
		{"interval", AddElements{Table: id, Set: vmap, Elements: []set.Element{{Key: "abcd", KeyEnd: "abce", Data: "\x00\x00\x00\x00"}}}, 0, nil, "flags interval"},
		{"no object", AddElements{Table: id, Set: counters, Elements: []set.Element{{Key: "abcd"}}}, 0, nil, "does not name an object"},
		{"no verdict", AddElements{Table: id, Set: vmap, Elements: []set.Element{{Key: "abcd"}}}, 0, nil, "no verdict"},
		{"foreign table", AddChain{Table: nft.TableID{Family: nft.FamilyIP, Name: "other"}, Chain: chain("c")}, -1, ErrNotAdopted, "ip other"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := c.Commit([]Op{AddChain{Table: id, Chain: chain("first")}, tt.op})
			var be *BatchError
			if !errors.As(err, &be) {
				t.Fatalf("Commit = %v, want a BatchError", err)
			}
			if be.Index != 1 || be.Element != tt.element || be.Op == nil {
				t.Errorf("BatchError index %d element %d, want 1, %d: %v", be.Index, be.Element, tt.element, err)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error %v is not %v", err, tt.is)
			}
			contains(t, err.Error(), tt.text)
		})
	}
}

// TestCheckChangesNothing checks a batch with every kind of op, and then that
// the ruleset, the generation, the owner and the events are as before.
func TestCheckChangesNothing(t *testing.T) {
	modes(t, func(t *testing.T, cfg Config) {
		ns, c := connect(t, cfg)
		id, other := testTable(), nft.TableID{Family: nft.FamilyInet, Name: "other"}
		set := setOf(nft.Set{Name: "blocked", Type: "ipv4_addr"})
		base := &object.Chain{Name: "input", Base: &object.Base{Type: "filter", Hook: 1}}
		kept, gone := &Handle{}, &Handle{}
		commit(t, c,
			AddTable{Table: id}, AddTable{Table: other}, AddSet{Table: id, Set: set}, AddChain{Table: id, Chain: base},
			AddChain{Table: id, Chain: chain("leaf")}, AddElements{Table: id, Set: set, Elements: pack(set, "10.0.0.1", "10.0.0.2")},
			AddRule{Table: id, Chain: "input", Rule: ruleOf("counter packets 7 bytes 70", "kept"), Handle: kept},
			AddRule{Table: id, Chain: "input", Rule: ruleOf("tcp dport 22 accept", "gone"), After: kept, Handle: gone},
		)
		list := func() string { return ns.Run(t, "nft", "-a", "list", "ruleset") }
		before := list()
		gen := nfttest.Must(c.Generation())
		events := nfttest.Must(listen(c.netNS, c.portID.Load(), unix.NFNLGRP_NFTABLES))
		defer func() { _ = events.close() }()

		fresh := &Handle{}
		more := setOf(nft.Set{Name: "more", Type: "ipv4_addr"})
		third := nft.TableID{Family: nft.FamilyIP6, Name: "third"}
		err := c.Check([]Op{
			AddTable{Table: third},
			DeleteRule{Table: id, Chain: "input", Handle: gone},
			DeleteElements{Table: id, Set: set, Elements: pack(set, "10.0.0.1")},
			DeleteChain{Table: id, Name: "leaf"},
			AddSet{Table: id, Set: more}, AddChain{Table: id, Chain: chain("new")}, AddChain{Table: third, Chain: chain("new")},
			AddElements{Table: id, Set: set, Elements: pack(set, "10.0.0.3")},
			AddRule{Table: id, Chain: "input", Rule: ruleOf("jump new", ""), After: kept, Handle: fresh},
			FlushSet{Table: id, Name: "more"}, DeleteSet{Table: id, Name: "more"},
			DeleteTable{Table: other},
		})
		if err != nil {
			t.Fatalf("%+v", err)
		}
		if fresh.N != 0 {
			t.Errorf("a rule that was checked has handle %d", fresh.N)
		}
		if after := list(); after != before {
			t.Errorf("the ruleset changed:\n before\n%s after\n%s", before, after)
		}
		if now, err := c.Generation(); err != nil || now != gen {
			t.Errorf("generation is %d, %v: want %d", now, err, gen)
		}
		if _, err := events.recv(false); !errors.Is(err, unix.EAGAIN) {
			t.Errorf("listening for events says %v: want that there are none", err)
		}
		if c.Owner() {
			if _, err := ns.Output("", "nft", "add", "chain", "ip", "weft", "intruder"); err == nil || !strings.Contains(err.Error(), "not permitted") {
				t.Errorf("another process that changes the table gets %v: want that it is not permitted", err)
			}
		}
		// The connection still does not own the tables of the batch.
		if err := c.Check([]Op{AddChain{Table: third, Chain: chain("new")}}); !errors.Is(err, ErrNotAdopted) {
			t.Errorf("error is %v: want ErrNotAdopted", err)
		}
		// The checked batch can be committed.
		commit(t, c, DeleteRule{Table: id, Chain: "input", Handle: gone}, DeleteTable{Table: other})
	})
}

// TestCheckNamesTheCulprit checks batches that the kernel rejects: some while it reads the
// op, others only at the end of the transaction.
func TestCheckNamesTheCulprit(t *testing.T) {
	modes(t, func(t *testing.T, cfg Config) {
		ns, c := connect(t, cfg)
		id := testTable()
		set := setOf(nft.Set{Name: "small", Type: "ipv4_addr", Size: 2})
		ranges := setOf(nft.Set{Name: "ranges", Type: "ipv4_addr", Flags: []string{"interval"}})
		base := &object.Chain{Name: "input", Base: &object.Base{Type: "filter", Hook: 1}}
		commit(t, c, AddTable{Table: id}, AddSet{Table: id, Set: set}, AddSet{Table: id, Set: ranges}, AddChain{Table: id, Chain: base},
			AddElements{Table: id, Set: ranges, Elements: pack(ranges, "10.0.0.0/24")})
		for _, tt := range []struct {
			name  string
			ops   []Op
			index int
			errno error
		}{
			{"full set", []Op{
				AddChain{Table: id, Chain: chain("a")},
				AddElements{Table: id, Set: set, Elements: pack(set, "10.0.0.1", "10.0.0.2", "10.0.0.3")},
			}, 1, unix.ENFILE},
			{"overlap", []Op{AddElements{Table: id, Set: ranges, Elements: pack(ranges, "10.0.0.5")}}, 0, unix.EEXIST},
			{"loop", []Op{
				AddChain{Table: id, Chain: chain("a")}, AddChain{Table: id, Chain: chain("b")},
				AddRule{Table: id, Chain: "input", Rule: ruleOf("jump a", ""), Handle: &Handle{}},
				AddRule{Table: id, Chain: "a", Rule: ruleOf("jump b", ""), Handle: &Handle{}},
				AddRule{Table: id, Chain: "b", Rule: ruleOf("jump a", ""), Handle: &Handle{}},
			}, -2, nil},
			{"nat in filter", []Op{AddRule{Table: id, Chain: "input", Rule: ruleOf("masquerade", ""), Handle: &Handle{}}}, 0, unix.EOPNOTSUPP},
			{"no such chain", []Op{DeleteChain{Table: id, Name: "nowhere"}}, 0, unix.ENOENT},
		} {
			t.Run(tt.name, func(t *testing.T) {
				before := ns.ListRuleset(t)
				checked, committed := c.Check(tt.ops), commitError(c, tt.ops)
				var be, ce *BatchError
				if !errors.As(checked, &be) || !errors.As(committed, &ce) {
					t.Fatalf("check says %v, commit says %v: want a BatchError of both", checked, committed)
				}
				if be.Index != ce.Index || be.Errno != ce.Errno {
					t.Errorf("check blames op %d (%v), commit op %d (%v)", be.Index, be.Errno, ce.Index, ce.Errno)
				}
				if tt.index >= 0 && be.Index != tt.index || tt.errno != nil && !errors.Is(be.Errno, tt.errno) {
					t.Errorf("check blames op %d (%v): want %d (%v)", be.Index, be.Errno, tt.index, tt.errno)
				}
				if after := ns.ListRuleset(t); after != before {
					t.Errorf("the ruleset changed:\n%s", after)
				}
			})
		}
		if err := c.Check(nil); err != nil {
			t.Errorf("checking nothing: %v", err)
		}
	})
}

func commitError(c *Conn, ops []Op) error {
	_, err := c.Commit(ops)
	return err
}

// TestCheckAfterForeignChange changes the generation between commits. Without
// ownership the connection has to recheck its tables.
func TestCheckAfterForeignChange(t *testing.T) {
	ns, c := connect(t, Config{NoOwner: true})
	id := testTable()
	commit(t, c, AddTable{Table: id})
	ns.Nft(t, "add table ip foreign")
	if err := c.Check([]Op{AddChain{Table: id, Chain: chain("a")}}); err != nil {
		t.Errorf("%+v", err)
	}
	ns.Nft(t, "delete table ip weft")
	if err := c.Check([]Op{AddChain{Table: id, Chain: chain("a")}}); !errors.Is(err, ErrDrift) {
		t.Errorf("error is %v: want ErrDrift", err)
	}
}
