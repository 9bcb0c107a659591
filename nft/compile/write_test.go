package compile

import (
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/set"
)

// mapScope has one map and every chain.
type mapScope struct {
	anyChain
	m *set.Set
}

func (s mapScope) Set(string) (*set.Set, bool) { return s.m, true }

// TestParseWritesOfDamagedBytes cuts a rule's expressions off at every byte, and
// damages every one: nothing panics, and nothing is found that is longer than
// the registers.
func TestParseWritesOfDamagedBytes(t *testing.T) {
	decl := nft.Map{Name: "m", Type: "ipv4_addr : ipv6_addr . inet_service", Flags: []string{"dynamic"}}
	m, err := set.CompileMap(nft.FamilyIP, &decl)
	if err != nil {
		t.Fatal(err)
	}
	r, err := CompileRule(nft.FamilyIP, nft.Rule{Text: "meta mark set 0x1 update @m { ip saddr : fd00::1 . 80 } accept"}, mapScope{m: m})
	if err != nil || len(r.Writes) != 1 || r.Writes[0].Any {
		t.Fatalf("writes %+v, error %v", r.Writes, err)
	}
	whole, err := r.Encode(0)
	if err != nil {
		t.Fatal(err)
	}
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

// setsScope has some sets and every chain.
type setsScope struct {
	anyChain
	sets map[string]*set.Set
}

func (s setsScope) Set(name string) (*set.Set, bool) { m, ok := s.sets[name]; return m, ok }

// TestWritesOfKeys finds the set that has the value of an entry as a key: only if the rule has
// looked up the same fields there, and nothing in between changes them.
func TestWritesOfKeys(t *testing.T) {
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
		family, scope := nft.FamilyIP, setsScope{sets: make(map[string]*set.Set)}
		if strings.HasPrefix(tt.rule, "ip6") {
			family = nft.FamilyIP6
		}
		for name, typ := range map[string]string{"s": "ipv4_addr . inet_service", "s6": "ipv6_addr . inet_service", "a": "ipv4_addr"} {
			s, err := set.Compile(family, &nft.Set{Name: name, Type: typ})
			if err != nil {
				t.Fatal(err)
			}
			scope.sets[name] = s
		}
		for name, typ := range map[string]string{
			"m": "ipv4_addr : ipv4_addr . inet_service", "m6": "ipv6_addr : ipv6_addr . inet_service", "m1": "ipv4_addr : ipv4_addr", "v": "ipv4_addr . inet_service : verdict",
		} {
			decl := &nft.Map{Name: name, Type: typ, Flags: []string{"dynamic", "timeout"}}
			if name == "v" {
				decl.Flags = nil
			}
			m, err := set.CompileMap(family, decl)
			if err != nil {
				t.Fatal(err)
			}
			scope.sets[name] = m
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
