package compile

import (
	"testing"

	"github.com/weft-proxy/weft/nft"
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
			if len(w.Data) > 4*registerSlots {
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
