package compile

import (
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/syntax"
)

// TestRegisterNumbers uses 128-bit registers where they begin.
func TestRegisterNumbers(t *testing.T) {
	for r, want := range map[register]uint32{0: 1, 1: 9, 3: 11, 4: 2, 5: 13, 8: 3, 12: 4, 15: 23} {
		if got := r.number(); got != want {
			t.Errorf("register %d has number %d: want %d", r, got, want)
		}
	}
}

func TestRegistersRunOut(t *testing.T) {
	var s registers
	for range 4 {
		if err := catch(func() { s.take(4, syntax.Pos{Line: 1, Column: 1}) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := catch(func() { s.take(1, syntax.Pos{Line: 1, Column: 1}) }); err == nil {
		t.Error("more registers than there are")
	}
	rule, err := CompileRule(nft.FamilyIP6, nft.Rule{Text: "ip6 saddr . ip6 daddr . ip6 saddr . ip6 daddr . tcp dport { fe80::1 . fe80::1 . fe80::1 . fe80::1 . 80 }"}, nil)
	if err == nil || rule != nil || !strings.Contains(err.Error(), "68 bytes") {
		t.Errorf("a key of 68 bytes: %v", err)
	}
}
