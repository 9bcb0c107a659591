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
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// modes runs a test with and without table ownership.
func modes(t *testing.T, f func(t *testing.T, cfg Config)) {
	t.Helper()
	t.Run("owner", func(t *testing.T) { f(t, Config{}) })
	t.Run("fallback", func(t *testing.T) { f(t, Config{NoOwner: true}) })
}

func TestCommitListsAsWritten(t *testing.T) {
	modes(t, func(t *testing.T, cfg Config) {
		ns := nfttest.New(t)
		c := open(t, ns, cfg)
		id := testTable()
		services := mapOf(t, nft.Map{Name: "services", TypeOf: "ip daddr . meta l4proto . th dport : verdict", Comment: "VIPs"})
		endpoints := mapOf(t, nft.Map{Name: "endpoints", TypeOf: "ip daddr . meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport"})
		vip := pack(t, services, "10.96.0.1 . tcp . 80 : goto pick-3")
		vip[0].Comment = "default/web:http"
		head := &Handle{}
		stats := commit(t, c,
			AddTable{Table: id, Comment: "made by weft"},
			AddSet{Table: id, Set: services}, AddSet{Table: id, Set: endpoints},
			AddChain{Table: id, Chain: chain("pick-3")},
			AddChain{Table: id, Chain: &object.Chain{Name: "nat-prerouting", Comment: "entry", Base: &object.Base{Type: "nat", Hook: 0, Priority: -100}}},
			AddChain{Table: id, Chain: &object.Chain{Name: "filter", Base: &object.Base{Type: "filter", Hook: 2, Priority: 10, Drop: true}}},
			AddElements{Table: id, Set: services, Elements: vip},
			AddElements{Table: id, Set: endpoints, Elements: pack(t, endpoints,
				"10.96.0.1 . tcp . 80 . 0 : 10.1.0.1 . 8080", "10.96.0.1 . tcp . 80 . 1 : 10.1.0.2 . 8080")},
			AddRule{Table: id, Chain: "pick-3", Rule: ruleOf(t, "meta l4proto { tcp, udp } counter packets 0 bytes 0 accept", "hello"), Owner: "weft/services", Handle: head},
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
			`meta l4proto { tcp, udp } counter packets 0 bytes 0 accept comment "hello"`,
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
	before, err := c.Generation()
	if err != nil {
		t.Fatal(err)
	}
	if stats, err := c.Commit(nil); err != nil || stats != (Stats{}) {
		t.Errorf("Commit(nil) = %+v, %v", stats, err)
	}
	if after, err := c.Generation(); err != nil || after != before {
		t.Errorf("generation %d, %v after nothing, want %d", after, err, before)
	}
}

func TestIntervalsAsNFTWritesThem(t *testing.T) {
	ns := nfttest.New(t)
	c := open(t, ns, Config{})
	id := testTable()
	blocked := setOf(t, nft.Set{Name: "blocked", Type: "ipv4_addr", Flags: []string{"interval"}})
	sources := setOf(t, nft.Set{Name: "sources", Type: "ipv4_addr . inet_service", Flags: []string{"interval"}})
	zones := mapOf(t, nft.Map{Name: "zones", Type: "inet_service : ipv4_addr", Flags: []string{"interval"}})
	commit(t, c, AddTable{Table: id},
		AddSet{Table: id, Set: blocked}, AddSet{Table: id, Set: sources}, AddSet{Table: id, Set: zones},
		AddElements{Table: id, Set: blocked, Elements: pack(t, blocked, "10.0.0.0/8", "11.0.0.0/8", "192.168.1.1", "192.168.1.2", "224.0.0.0/3", "0.0.0.0/32")},
		AddElements{Table: id, Set: sources, Elements: pack(t, sources, "10.0.0.0/8 . 80", "192.168.0.1-192.168.0.9 . 1024-2048")},
		AddElements{Table: id, Set: zones, Elements: pack(t, zones, "1-1023 : 10.0.0.1", "1024-65535 : 10.0.0.2")},
	)
	contains(t, ns.ListRuleset(t),
		"10.0.0.0/8", "11.0.0.0/8", "192.168.1.1,", "192.168.1.2,", "224.0.0.0/3", "0.0.0.0",
		"10.0.0.0/8 . 80", "192.168.0.1-192.168.0.9 . 1024-2048",
		"1-1023 : 10.0.0.1", "1024-65535 : 10.0.0.2")
	commit(t, c,
		DeleteElements{Table: id, Set: blocked, Elements: pack(t, blocked, "11.0.0.0/8", "224.0.0.0/3", "192.168.1.1")},
		DeleteElements{Table: id, Set: sources, Elements: pack(t, sources, "10.0.0.0/8 . 80")},
		DeleteElements{Table: id, Set: zones, Elements: pack(t, zones, "1-1023 : 10.0.0.1")})
	list := ns.ListRuleset(t)
	contains(t, list, "elements = { 0.0.0.0, 10.0.0.0/8,\n\t\t\t     192.168.1.2 }",
		"elements = { 192.168.0.1-192.168.0.9 . 1024-2048 }", "elements = { 1024-65535 : 10.0.0.2 }")
}

func TestElementOptions(t *testing.T) {
	ns := nfttest.New(t)
	c := open(t, ns, Config{})
	id := testTable()
	set := setOf(t, nft.Set{Name: "leases", Type: "ipv4_addr", Flags: []string{"timeout"}, Timeout: time.Hour, GCInterval: time.Minute, Size: 1000, Comment: "leases"})
	e := pack(t, set, "10.0.0.1", "10.0.0.2")
	e[1].Timeout, e[1].Comment = 2*time.Hour, "long"
	verdicts := mapOf(t, nft.Map{Name: "verdicts", Type: "ipv4_addr : verdict"})
	commit(t, c, AddTable{Table: id}, AddSet{Table: id, Set: set}, AddElements{Table: id, Set: set, Elements: e},
		AddChain{Table: id, Chain: chain("c")}, AddSet{Table: id, Set: verdicts},
		AddElements{Table: id, Set: verdicts, Elements: pack(t, verdicts,
			"10.0.0.1 : accept", "10.0.0.2 : drop", "10.0.0.3 : return", "10.0.0.4 : continue", "10.0.0.5 : jump c", "10.0.0.6 : goto c")})
	contains(t, ns.ListRuleset(t), "timeout 1h", "gc-interval 1m", "size 1000", `comment "leases"`,
		"10.0.0.1 expires", `10.0.0.2 timeout 2h expires`, `comment "long"`,
		"10.0.0.1 : accept", "10.0.0.2 : drop", "10.0.0.3 : return", "10.0.0.4 : continue", "10.0.0.5 : jump c", "10.0.0.6 : goto c")
}

// loadEndpoints returns the map of endpoints and n elements.
func loadEndpoints(t testing.TB, n int) (*set.Set, []set.Element) {
	t.Helper()
	s := mapOf(t, nft.Map{Name: "endpoints", TypeOf: "ip daddr . meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport"})
	elements := make([]set.Element, 0, n)
	for i := range n {
		svc, slot := i/10, i%10
		e, err := s.Pack(nft.Element{
			Key:   fmt.Sprintf("10.%d.%d.%d . tcp . 80 . %d", 96+svc>>16, svc>>8&255, svc&255, slot),
			Value: fmt.Sprintf("10.1.%d.%d . 8080", svc>>8&255, slot),
		})
		if err != nil {
			t.Fatal(err)
		}
		elements = append(elements, e)
	}
	return s, elements
}

func TestManyElementsInChunks(t *testing.T) {
	ns := nfttest.New(t)
	c := open(t, ns, Config{})
	id := testTable()
	s, elements := loadEndpoints(t, 110_000)
	stats := commit(t, c, AddTable{Table: id}, AddSet{Table: id, Set: s}, AddElements{Table: id, Set: s, Elements: elements})
	if stats.Elements != len(elements) || stats.Messages < 70 {
		t.Errorf("stats = %+v, want %d elements in more than 70 messages", stats, len(elements))
	}
	start := time.Now()
	tables, err := c.Dump()
	if err != nil {
		t.Fatal(err)
	}
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
	if tables, err = c.Dump(); err != nil || len(tables[0].Sets[0].Elements) != rest {
		t.Fatalf("dump after the deletion: %v", err) // and the hash table shrank
	}
	if list := ns.Run(t, "nft", "list", "map", "ip", "weft", "endpoints"); strings.Count(list, " . tcp . 80 . ") != rest {
		t.Errorf("nft lists %d elements, want %d", strings.Count(list, " . tcp . 80 . "), rest)
	}
}

func TestRejectedElementIsNamed(t *testing.T) {
	modes(t, func(t *testing.T, cfg Config) {
		ns := nfttest.New(t)
		c := open(t, ns, cfg)
		id := testTable()
		set, elements := loadEndpoints(t, 5000)
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
	ns := nfttest.New(t)
	c := open(t, ns, Config{})
	id := testTable()
	s, elements := loadEndpoints(t, 3)
	vmap := mapOf(t, nft.Map{Name: "services", Type: "ipv4_addr : verdict"})
	commit(t, c, AddTable{Table: id}, AddSet{Table: id, Set: s}, AddSet{Table: id, Set: vmap}, AddElements{Table: id, Set: s, Elements: elements[:1]})
	bad := elements[0]
	bad.Key = bad.Key[1:]
	long := pack(t, vmap, "10.0.0.1 : drop")
	long[0].Comment = strings.Repeat("x", 129)
	for _, tt := range []struct {
		name    string
		op      Op
		element int
		is      error
		text    string
	}{
		{"missing chain of a verdict", AddElements{Table: id, Set: vmap, Elements: pack(t, vmap, "10.0.0.1 : accept", "10.0.0.2 : goto nowhere", "10.0.0.3 : drop")}, 1, unix.ENOENT, "10.0.0.2 : goto nowhere"},
		{"missing element", DeleteElements{Table: id, Set: s, Elements: elements[:2]}, 1, unix.ENOENT, "10.96.0.0 . tcp . 80 . 1"},
		{"missing chain of a rule", AddRule{Table: id, Chain: "nowhere", Rule: ruleOf(t, "accept", "")}, -1, unix.ENOENT, "insert rule ip weft nowhere accept"},
		{"missing rule", DeleteRule{Table: id, Chain: "nowhere", Handle: &Handle{N: 99}}, -1, unix.ENOENT, "handle 99"},
		{"rule without handle", DeleteRule{Table: id, Chain: "nowhere", Handle: &Handle{}}, -1, nil, "no handle"},
		{"after nothing", AddRule{Table: id, Chain: "nowhere", Rule: ruleOf(t, "accept", ""), After: &Handle{}}, -1, nil, "neither committed nor earlier"},
		{"missing set", DeleteSet{Table: id, Name: "nowhere"}, -1, unix.ENOENT, "delete set ip weft nowhere"},
		{"short key", AddElements{Table: id, Set: s, Elements: []set.Element{elements[1], bad}}, 1, nil, "key has 15 bytes: want 16"},
		{"long comment", AddElements{Table: id, Set: vmap, Elements: long}, 0, nil, "129 bytes"},
		{"interval", AddElements{Table: id, Set: vmap, Elements: []set.Element{{Key: "abcd", KeyEnd: "abce", Data: "\x00\x00\x00\x00"}}}, 0, nil, "flags interval"},
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
