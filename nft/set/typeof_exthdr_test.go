package set

import (
	"errors"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/syntax"
)

// extensionFields returns all expressions on extensions that can be declared.
func extensionFields() []string {
	var out []string
	for _, kind := range []syntax.ExthdrKind{syntax.ExthdrIPv6, syntax.ExthdrIPv4, syntax.ExthdrTCP, syntax.ExthdrSCTP} {
		list, _ := selector.ExtensionsOf(kind)
		for _, e := range list {
			prefix := kind.String() + " "
			if kind == syntax.ExthdrIPv6 {
				prefix = ""
			}
			if e.Presence.Bits != 0 {
				out = append(out, kind.String()+" "+e.Name)
			}
			for _, f := range e.Fields {
				out = append(out, prefix+e.Name+" "+f.Name)
			}
		}
	}
	return out
}

// TestExtensionTypes declares a set of each expression and reads its type back from the userdata.
func TestExtensionTypes(t *testing.T) {
	fields := append(extensionFields(), "tcp option 200", "tcp option 2 length", "tcp option @2,16,16")
	if len(fields) < 150 {
		t.Fatalf("%d expressions: want all", len(fields))
	}
	for _, text := range fields {
		s, err := Compile(nft.FamilyInet, &nft.Set{Name: "s", TypeOf: text})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		parts, want := typeOfParts(s.UserData, udataSetKeyTypeOf), s.Key.parts
		if len(parts) != 1 || parts[0] != want[0] {
			t.Errorf("%s: reads back as %+v, want %+v", text, parts, want)
		}
	}
	for _, attrs := range [][]uint32{{9, 1, 1}, {1, 77, 0}, {7, 9, 2}, {255, 1, 1}, {0, 9, 3}, {0, 0, 4}} {
		if p, ok := parseTypeOfExthdr(func(typ byte) uint32 { return attrs[typ] }); ok {
			t.Errorf("%v reads as %+v", attrs, p)
		}
	}
	for _, text := range []string{"tcp option nop length", "tcp option @2,24,8", "tcp option @200,16,16", "rt2 addr", "frag bogus", "exthdr srh"} {
		var e *syntax.Error
		if _, err := Compile(nft.FamilyInet, &nft.Set{Name: "s", TypeOf: text}); !errors.As(err, &e) {
			t.Errorf("typeof %s: error %v, want one with a place", text, err)
		}
	}
}
