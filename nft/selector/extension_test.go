package selector

import (
	"testing"

	"github.com/weft-proxy/weft/nft/syntax"
)

// TestExtensionTables checks that fields do not overlap by mistake, and that
// nft's numbers for them are of one field each.
func TestExtensionTables(t *testing.T) {
	for _, kind := range []syntax.ExthdrKind{syntax.ExthdrIPv6, syntax.ExthdrIPv4, syntax.ExthdrTCP, syntax.ExthdrSCTP} {
		list, _ := ExtensionsOf(kind)
		names := map[string]bool{}
		for _, e := range list {
			if names[e.Name] {
				t.Errorf("%s %s is there twice", kind, e.Name)
			}
			names[e.Name] = true
			end, numbers := uint32(0), map[uint32]bool{}
			for _, f := range e.Fields {
				if f.offset < end {
					t.Errorf("%s %s %s begins before the end of the field before it", kind, e.Name, f.Name)
				}
				if numbers[f.Index] || f.Bits == 0 || f.Type == nil {
					t.Errorf("%s %s %s: %+v", kind, e.Name, f.Name, f)
				}
				end, numbers[f.Index] = f.offset+f.Bits, true
			}
		}
	}
}
