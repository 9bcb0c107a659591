package kernel

import (
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/declared"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestWritesOfRules tests rules that add elements to maps: compilation, dump and a packet
// must yield the same element.
func TestWritesOfRules(t *testing.T) {
	for _, tt := range []struct {
		decl nft.Map
		rule string
		// known is true if the rule contains the value.
		known bool
		// in is the set that has it as a key.
		in string
	}{
		{nft.Map{Type: "ipv4_addr : ipv4_addr . inet_service"}, "ip saddr timeout 3h : 10.1.0.1 . 8080", true, ""},
		{nft.Map{Type: "ipv4_addr . inet_proto . inet_service : ipv4_addr . inet_service"}, "ip saddr . 17 . 80 : 10.1.0.1 . 8080", true, ""},
		{nft.Map{Type: "ipv4_addr . inet_proto : ipv6_addr . inet_service"}, "ip saddr . 17 : fd00::1 . 8080", true, ""},
		{nft.Map{Type: "ipv4_addr : ipv4_addr"}, "ip saddr : 10.1.0.1", true, ""},
		{nft.Map{Type: "ipv4_addr : inet_service"}, "ip saddr : 8080", true, ""},
		{nft.Map{Type: "ipv4_addr : mark"}, "ip saddr : 0x4000", true, ""},
		{nft.Map{Type: "ipv4_addr . inet_proto : inet_proto . inet_service . ipv4_addr"}, "127.0.0.1 . 6 : 17 . 9 . 10.0.0.1", true, ""},
		{nft.Map{Type: "ipv4_addr : ipv4_addr . inet_service"}, "ip saddr : 10.1.0.1 . udp dport", false, ""},
		{nft.Map{Type: "ipv4_addr : ipv4_addr . inet_service"}, "ip saddr : ip daddr . 8080", false, ""},
		{nft.Map{Type: "ipv4_addr : ipv4_addr"}, "10.0.0.1 : ip daddr", false, ""},
		{nft.Map{Type: "ipv4_addr : ipv4_addr . inet_service"}, "ip saddr timeout 3h : ip daddr . udp dport", false, "s"},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			ns, c := connect(t, Config{})
			id := testTable()
			tt.decl.Name, tt.decl.Flags, tt.decl.Size = "m", []string{"dynamic", "timeout"}, 64
			s, keys := mapOf(tt.decl), setOf(nft.Set{Name: "s", Type: "ipv4_addr . inet_service"})
			text := fmt.Sprintf("udp dport 9 meta mark set 0x1 ip daddr . udp dport @s update @m { %s } counter", tt.rule)
			rule := nfttest.Must(compile.CompileRule(nft.FamilyIP, nft.Rule{Text: text}, declared.Sets{"m": s, "s": keys}))
			out := &object.Chain{Name: "out", Base: &object.Base{Type: "filter", Hook: unix.NF_INET_LOCAL_OUT}}
			commit(t, c, AddTable{Table: id}, AddSet{Table: id, Set: s}, AddSet{Table: id, Set: keys},
				AddElements{Table: id, Set: keys, Elements: pack(keys, "127.0.0.1 . 9")}, AddChain{Table: id, Chain: out},
				AddRule{Table: id, Chain: "out", Rule: rule, Handle: &Handle{}})
			dump := nfttest.Must(c.Dump())
			if got := dump[0].Chains[0].Rules[0].Writes; !reflect.DeepEqual(got, rule.Writes) || len(got) != 1 {
				t.Fatalf("the dump has writes %+v, the compiled rule %+v", got, rule.Writes)
			}
			sendPacket(t, ns)
			entries, err := c.DumpSet(id, s)
			if err != nil || len(entries) != 1 {
				t.Fatalf("entries %q, error %v: want that of the packet\n%s", entries, err, ns.ListRuleset(t))
			}
			w := &rule.Writes[0]
			if w.Map != "m" || w.Any == tt.known || w.In != tt.in || !w.Writes(&entries[0]) {
				t.Errorf("write %+v, entry %q: known %t", *w, entries[0], tt.known)
			}
			other := set.Element{Data: entries[0].Data[1:] + "x"}
			if w.Writes(&other) == tt.known {
				t.Errorf("write %+v, entry %q", *w, other)
			}
		})
	}
}

// TestRulesThatWriteNothing tests rules that look as if they added elements to a map.
func TestRulesThatWriteNothing(t *testing.T) {
	scope := declared.Sets{
		"m": mapOf(nft.Map{Name: "m", Type: "ipv4_addr : ipv4_addr", Flags: []string{"dynamic"}}),
		"s": setOf(nft.Set{Name: "s", Type: "ipv4_addr", Flags: []string{"dynamic"}}),
	}
	for _, text := range []string{
		"update @s { ip saddr }", "delete @m { ip saddr : 10.0.0.1 }", "ip saddr map @m @s accept", "meta mark set 0x4000 accept",
	} {
		rule, err := compile.CompileRule(nft.FamilyIP, nft.Rule{Text: text}, scope)
		if err == nil && len(rule.Writes) > 0 {
			t.Errorf("%s: writes %+v", text, rule.Writes)
		}
	}
	two, err := compile.CompileRule(nft.FamilyIP, nft.Rule{Text: "update @m { ip saddr : 10.0.0.1 } add @m { ip daddr : 10.0.0.2 } update @m { ip saddr : 10.0.0.1 }"}, scope)
	if err != nil || len(two.Writes) != 2 {
		t.Errorf("writes %+v, error %v: want two", two.Writes, err)
	}
}

// sendPacket sends a UDP packet over loopback.
func sendPacket(t *testing.T, ns *nfttest.NS) {
	t.Helper()
	nfttest.NoError(t, ns.Do(func() error {
		conn, err := net.Dial("udp4", "127.0.0.1:9")
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		_, err = conn.Write([]byte("x"))
		return err
	}))
}

// TestRulesThatChangeSets tests that a rule that changes a set compiles if, and only if, the
// kernel accepts it: it cannot change the fixed table or the bitmap that it chooses for some
// sets without flags.
func TestRulesThatChangeSets(t *testing.T) {
	for _, tt := range []struct {
		decl nft.Set
		key  string
		ok   bool
	}{
		{nft.Set{Type: "ipv4_addr"}, "ip saddr", true},
		{nft.Set{Type: "ipv4_addr", Size: 100}, "ip saddr", false},
		{nft.Set{Type: "ipv4_addr", Size: 100, Flags: []string{"dynamic"}}, "ip saddr", true},
		{nft.Set{Type: "ipv4_addr", Size: 100, Flags: []string{"timeout"}}, "ip saddr", true},
		{nft.Set{Type: "inet_service"}, "tcp dport", false},
		{nft.Set{Type: "inet_service", Flags: []string{"dynamic"}}, "tcp dport", true},
	} {
		tt.decl.Name = "s"
		s := setOf(tt.decl)
		text := "add @s { " + tt.key + " }"
		rule, err := compile.CompileRule(nft.FamilyIP, nft.Rule{Text: text}, declared.Sets{"s": s})
		if !tt.ok {
			if err == nil || !strings.Contains(err.Error(), "declare it with flags dynamic") {
				t.Errorf("%+v: error %v", tt.decl, err)
			}
			// The rule for a set that says so, on this one.
			dynamic := *s
			dynamic.Flags |= set.FlagEval
			rule, err = compile.CompileRule(nft.FamilyIP, nft.Rule{Text: text}, declared.Sets{"s": &dynamic})
		}
		if err != nil {
			t.Errorf("%+v: error %v", tt.decl, err)
			continue
		}
		c := open(t, nfttest.New(t), Config{})
		id := testTable()
		_, err = c.Commit([]Op{AddTable{Table: id}, AddSet{Table: id, Set: s}, AddChain{Table: id, Chain: chain("c")}, AddRule{Table: id, Chain: "c", Rule: rule, Handle: &Handle{}}})
		if tt.ok != (err == nil) || err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
			t.Errorf("%+v: the kernel's answer is %v, want one that it accepts: %t", tt.decl, err, tt.ok)
		}
	}
}

// TestStatementBetweenComparisons sends packets through a rule with a statement between
// two comparisons: only those that match the first one may run it. nft 1.0.6 merges the
// comparisons and runs the statement for all.
func TestStatementBetweenComparisons(t *testing.T) {
	ns, c := connect(t, Config{})
	id := testTable()
	banned := setOf(nft.Set{Name: "banned", Type: "ipv4_addr", Flags: []string{"dynamic"}, Size: 64})
	rule := nfttest.Must(compile.CompileRule(nft.FamilyIP, nft.Rule{Text: "tcp dport 22 add @banned { ip saddr } tcp sport 5 drop"}, declared.Sets{"banned": banned}))
	in := &object.Chain{Name: "in", Base: &object.Base{Type: "filter", Hook: unix.NF_INET_LOCAL_IN}}
	commit(t, c, AddTable{Table: id}, AddSet{Table: id, Set: banned}, AddChain{Table: id, Chain: in},
		AddRule{Table: id, Chain: "in", Rule: rule, Handle: &Handle{}})
	for _, tt := range []struct {
		address string
		want    int
	}{{"127.0.0.1:80", 0}, {"127.0.0.1:22", 1}} {
		// Nothing listens there, and the rule does not drop the packet.
		if err := ns.Do(func() error {
			_, err := net.DialTimeout("tcp4", tt.address, 5*time.Second)
			return err
		}); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatal(err)
		}
		got, err := c.DumpSet(id, banned)
		if err != nil || len(got) != tt.want {
			t.Errorf("after a packet to %s: %d senders are banned, want %d (error %v)", tt.address, len(got), tt.want, err)
		}
	}
}
