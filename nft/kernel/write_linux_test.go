package kernel

import (
	"errors"
	"fmt"
	"net"
	"reflect"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
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
			ns := nfttest.New(t)
			c := open(t, ns, Config{})
			id := testTable()
			tt.decl.Name, tt.decl.Flags, tt.decl.Size = "m", []string{"dynamic", "timeout"}, 64
			s, keys := mapOf(t, tt.decl), setOf(t, nft.Set{Name: "s", Type: "ipv4_addr . inet_service"})
			text := fmt.Sprintf("udp dport 9 meta mark set 0x1 ip daddr . udp dport @s update @m { %s } counter", tt.rule)
			rule, err := compile.CompileRule(nft.FamilyIP, nft.Rule{Text: text}, setsScope{"m": s, "s": keys})
			if err != nil {
				t.Fatal(err)
			}
			out := &object.Chain{Name: "out", Base: &object.Base{Type: "filter", Hook: unix.NF_INET_LOCAL_OUT}}
			commit(t, c, AddTable{Table: id}, AddSet{Table: id, Set: s}, AddSet{Table: id, Set: keys},
				AddElements{Table: id, Set: keys, Elements: pack(t, keys, "127.0.0.1 . 9")}, AddChain{Table: id, Chain: out},
				AddRule{Table: id, Chain: "out", Rule: rule, Handle: &Handle{}})
			dump, err := c.Dump()
			if err != nil {
				t.Fatal(err)
			}
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
	scope := setsScope{
		"m": mapOf(t, nft.Map{Name: "m", Type: "ipv4_addr : ipv4_addr", Flags: []string{"dynamic"}}),
		"s": setOf(t, nft.Set{Name: "s", Type: "ipv4_addr", Flags: []string{"dynamic"}}),
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

// TestDumpSetThatIsNotThere checks that the error contains the kernel's answer.
func TestDumpSetThatIsNotThere(t *testing.T) {
	c := open(t, nfttest.New(t), Config{})
	set := setOf(t, nft.Set{Name: "s", Type: "ipv4_addr"})
	if _, err := c.DumpSet(testTable(), set); !errors.Is(err, unix.ENOENT) {
		t.Errorf("DumpSet = %v, want ENOENT", err)
	}
	commit(t, c, AddTable{Table: testTable()})
	if _, err := c.DumpSet(testTable(), set); !errors.Is(err, unix.ENOENT) {
		t.Errorf("DumpSet = %v, want ENOENT", err)
	}
}

// TestDumpSetOfAnotherProgram tests that a set of a table without weft's mark is not read.
func TestDumpSetOfAnotherProgram(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	c := open(t, ns, Config{})
	ns.Nft(t, "table ip foreign { set s { type ipv4_addr; elements = { 10.0.0.1 }; }; }")
	got, err := c.DumpSet(nft.TableID{Family: nft.FamilyIP, Name: "foreign"}, setOf(t, nft.Set{Name: "s", Type: "ipv4_addr"}))
	if !errors.Is(err, ErrForeignTable) || !errors.Is(err, unix.ENOENT) || len(got) != 0 {
		t.Errorf("DumpSet = %v, %v, want ErrForeignTable and ENOENT", got, err)
	}
}

// sendPacket sends a UDP packet over loopback.
func sendPacket(t *testing.T, ns *nfttest.NS) {
	t.Helper()
	err := ns.Do(func() error {
		conn, err := net.Dial("udp4", "127.0.0.1:9")
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		_, err = conn.Write([]byte("x"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
