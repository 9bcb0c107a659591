package compile

import (
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/declared"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
	"github.com/weft-proxy/weft/nft/userdata"
)

// TestParseWritesOfDamagedBytes cuts a rule's expressions off at every byte, and
// damages every one: nothing panics, and nothing is found that is longer than
// the registers.
func TestParseWritesOfDamagedBytes(t *testing.T) {
	decl := nft.Map{Name: "m", Type: "ipv4_addr : ipv6_addr . inet_service", Flags: []string{"dynamic"}}
	m := nfttest.Must(set.CompileMap(nft.FamilyIP, &decl))
	r, err := CompileRule(nft.FamilyIP, nft.Rule{Text: "meta mark set 0x1 update @m { ip saddr : fd00::1 . 80 } accept"}, declared.Sets{"m": m})
	if err != nil || len(r.Writes) != 1 || r.Writes[0].Any {
		t.Fatalf("writes %+v, error %v", r.Writes, err)
	}
	whole := nfttest.Must(r.Encode(0))
	check := func(b []byte) {
		t.Helper()
		writes, _ := ParseWrites(b) // that it returns is what is tested
		for _, w := range writes {
			if len(w.Data) > 4*expr.Slots {
				t.Errorf("write %+v", w)
			}
		}
	}
	for i := range whole {
		check(whole[:i])
		for _, v := range []byte{0, 1, 0x7f, 0xff} {
			b := append([]byte(nil), whole...)
			b[i] = v
			check(b)
		}
	}
	if writes, err := ParseWrites(whole); err != nil || len(writes) != 1 || writes[0] != r.Writes[0] {
		t.Errorf("writes %+v, error %v", writes, err)
	}
}

// TestWritesOfKeys finds the set that has the value of an entry as a key: only if the rule has
// looked up the same fields there, and nothing in between changes them.
func TestWritesOfKeys(t *testing.T) {
	scope := declared.Parse(`table inet t {
		set s { type ipv4_addr . inet_service; }
		set s6 { type ipv6_addr . inet_service; }
		set a { type ipv4_addr; }
		map m { type ipv4_addr : ipv4_addr . inet_service; flags dynamic,timeout; }
		map m6 { type ipv6_addr : ipv6_addr . inet_service; flags dynamic,timeout; }
		map m1 { type ipv4_addr : ipv4_addr; flags dynamic,timeout; }
		map v { type ipv4_addr . inet_service : verdict; }
	}`)[0]
	for _, tt := range []struct{ rule, in string }{
		{"ip daddr . th dport @s update @m { ip saddr timeout 1h : ip daddr . th dport }", "s"},
		{"meta l4proto { tcp, udp } ip daddr . th dport @s counter update @m { ip saddr : ip daddr . th dport }", "s"},
		{"ip saddr @a ip daddr . th dport @s add @m { ip saddr : ip daddr . th dport }", "s"},
		{"ip6 daddr . th dport @s6 update @m6 { ip6 saddr : ip6 daddr . th dport }", "s6"},
		{"ip saddr @a update @m1 { ip daddr : ip saddr }", "a"},
		{"update @m { ip saddr : ip daddr . th dport }", ""},
		{"ip daddr . th dport != @s update @m { ip saddr : ip daddr . th dport }", ""},
		{"ip saddr . th dport @s update @m { ip saddr : ip daddr . th dport }", ""},
		{"ip daddr . th sport @s update @m { ip saddr : ip daddr . th dport }", ""},
		{"ip daddr . th dport { 10.0.0.1 . 80, 10.0.0.2 . 80 } update @m { ip saddr : ip daddr . th dport }", ""},
		{"ip daddr . th dport @s ip daddr set 10.0.0.1 update @m { ip saddr : ip daddr . th dport }", ""},
		{"ip daddr . th dport vmap @v update @m { ip saddr : ip daddr . th dport }", ""},
	} {
		family := nft.FamilyIP
		if strings.HasPrefix(tt.rule, "ip6") {
			family = nft.FamilyIP6
		}
		r, err := CompileRule(family, nft.Rule{Text: tt.rule}, scope)
		if err != nil {
			t.Errorf("%s: %v", tt.rule, err)
			continue
		}
		if len(r.Writes) != 1 || !r.Writes[0].Any || r.Writes[0].In != tt.in {
			t.Errorf("%s: writes %+v, want keys of %q", tt.rule, r.Writes, tt.in)
		}
	}
}

// TestObjectMap declares, packs and reads back maps of objects.
func TestObjectMap(t *testing.T) {
	for _, kind := range nft.ObjectKinds {
		m := &nft.Map{Name: "m", Type: "inet_service : " + string(kind), Flags: []string{"interval"}}
		s, err := set.CompileMap(nft.FamilyInet, m)
		if strings.HasPrefix(string(kind), "ct ") {
			if err == nil {
				t.Errorf("%s: a map of them was declared, which nft refuses", m.Type)
			}
			continue
		}
		nfttest.NoError(t, err)
		if s.Object != kind || s.Flags != set.FlagObject|set.FlagInterval || s.Data.Len != 0 || s.Declaration().Type != m.Type {
			t.Errorf("%s: object %q, flags %#x, %d bytes of data, declaration %q", m.Type, s.Object, s.Flags, s.Data.Len, s.Declaration().Type)
		}
		for _, value := range []string{"web", `"web"`, " web "} {
			e, err := s.Pack(nft.Element{Key: "80-90", Value: value})
			if err != nil || e.Data != "web" || e.Key != "\x00\x50" || e.KeyEnd != "\x00\x5a" || s.FormatData(e) != "web" {
				t.Errorf("element %+v with data %q, %v", e, s.FormatData(e), err)
			}
		}
		for _, value := range []string{"", "5", `"`, "a b", "web . ssh"} {
			if _, err := s.Pack(nft.Element{Key: "80", Value: value}); err == nil {
				t.Errorf("object %q was packed", value)
			}
		}
		dumped := &set.Set{Name: s.Name, Key: set.Type{ID: s.Key.ID, Len: s.Key.Len}, Object: kind, Flags: s.Flags, UserData: s.UserData}
		if dumped.Complete(); !dumped.Map || dumped.Verdict || !dumped.Equal(s) {
			t.Errorf("%+v: want %+v", dumped, s)
		}
	}
	counters := nfttest.Must(set.CompileMap(nft.FamilyInet, &nft.Map{Name: "m", Type: "mark : counter"}))
	quotas := nfttest.Must(set.CompileMap(nft.FamilyInet, &nft.Map{Name: "m", Type: "mark : quota"}))
	if counters.Equal(quotas) {
		t.Error("maps of counters and of quotas are equal")
	}
}

// TestObjectsOfRules lists the objects of rules, sorted and without repeats.
func TestObjectsOfRules(t *testing.T) {
	c := declared.Sets{}
	rule := nfttest.Must(CompileRule(nft.FamilyIP, nft.Rule{Text: "tcp dport 21 limit name a counter name b ct helper set h counter name meta mark map { 1 : a, 2 : b } flow add @f flow offload @f"}, c))
	want := []object.Ref{{Kind: nft.ObjectCounter, Name: "a"}, {Kind: nft.ObjectCounter, Name: "b"}, {Kind: nft.ObjectCTHelper, Name: "h"}, {Kind: nft.ObjectLimit, Name: "a"}}
	if !slices.Equal(rule.Objects, want) || !slices.Equal(rule.Flowtables, []string{"f"}) {
		t.Errorf("objects %v, flowtables %v: want %v and f", rule.Objects, rule.Flowtables, want)
	}
	print := func(text string) userdata.Fingerprint {
		return nfttest.Must(CompileRule(nft.FamilyIP, nft.Rule{Text: text}, c)).Fingerprint
	}
	if print("counter name meta mark map { 1 : a }") == print("counter name meta mark map { 1 : b }") {
		t.Error("maps to other objects have the same fingerprint")
	}
	if print("counter name meta mark map { 1 : a }") == print("limit name meta mark map { 1 : a }") {
		t.Error("maps to objects of other kinds have the same fingerprint")
	}
}

// TestNoScope refuses objects where nothing is declared.
func TestNoScope(t *testing.T) {
	for _, text := range []string{"counter name x", "flow add @f", "quota name meta mark map { 1 : x }", "limit name meta mark map @m"} {
		if _, err := CompileRule(nft.FamilyIP, nft.Rule{Text: text}, nil); err == nil {
			t.Errorf("%s was compiled without a scope", text)
		}
	}
}
