package compile

import (
	"errors"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/syntax"
)

// extensionFields returns all expressions on extensions that can be declared.
func extensionFields() []string {
	var out []string
	for _, kind := range []syntax.ExthdrKind{syntax.ExthdrIPv6, syntax.ExthdrIPv4, syntax.ExthdrTCP, syntax.ExthdrSCTP} {
		list, _ := extensionsOf(kind)
		for _, e := range list {
			prefix := kind.String() + " "
			if kind == syntax.ExthdrIPv6 {
				prefix = ""
			}
			if e.presence.bits != 0 {
				out = append(out, kind.String()+" "+e.name)
			}
			for _, f := range e.fields {
				out = append(out, prefix+e.name+" "+f.name)
			}
		}
	}
	return out
}

// TestExtensionTables checks that fields do not overlap by mistake, and that
// nft's numbers for them are of one field each.
func TestExtensionTables(t *testing.T) {
	for _, kind := range []syntax.ExthdrKind{syntax.ExthdrIPv6, syntax.ExthdrIPv4, syntax.ExthdrTCP, syntax.ExthdrSCTP} {
		list, _ := extensionsOf(kind)
		names := map[string]bool{}
		for _, e := range list {
			if names[e.name] {
				t.Errorf("%s %s is there twice", kind, e.name)
			}
			names[e.name] = true
			end, numbers := uint32(0), map[uint32]bool{}
			for _, f := range e.fields {
				if f.offset < end {
					t.Errorf("%s %s %s begins before the end of the field before it", kind, e.name, f.name)
				}
				if numbers[f.index] || f.bits == 0 || f.typ == nil {
					t.Errorf("%s %s %s: %+v", kind, e.name, f.name, f)
				}
				end, numbers[f.index] = f.offset+f.bits, true
			}
		}
	}
}

// TestExtensionTypes declares a set of each expression and reads its type back
// from what is stored with the set.
func TestExtensionTypes(t *testing.T) {
	fields := append(extensionFields(), "tcp option 200", "tcp option 2 length", "tcp option @2,16,16")
	if len(fields) < 150 {
		t.Fatalf("%d expressions: want all", len(fields))
	}
	for _, text := range fields {
		s, err := CompileSet(nft.FamilyInet, &nft.Set{Name: "s", TypeOf: text})
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
		var e *Error
		if _, err := CompileSet(nft.FamilyInet, &nft.Set{Name: "s", TypeOf: text}); !errors.As(err, &e) {
			t.Errorf("typeof %s: error %v, want one with a place", text, err)
		}
	}
}

// TestRawOptionSet leaves out the type of a raw option: nft 1.0.6 stores one
// that it aborts on when it lists the set.
func TestRawOptionSet(t *testing.T) {
	for text, stored := range map[string]bool{
		"tcp option @2,24,8 { 1, 2 }": false, "tcp option @200,16,16 { 1, 2 }": false, "tcp option @2,16,16 { 1, 2 }": true,
	} {
		r, err := CompileRule(nft.FamilyInet, nft.Rule{Text: text}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := findRecord(r.Anonymous[0].Set.UserData, udataSetKeyTypeOf); ok != stored {
			t.Errorf("%s: the type is stored: %v, want %v", text, ok, stored)
		}
	}
}

// TestExtensionNames says in each error what could stand there.
func TestExtensionNames(t *testing.T) {
	for text, want := range map[string]string{
		"exthdr srh exists":        "hbh, rt, frag, dst, mh",
		"rt2 addr ::1":             "no field",
		"srh sid[3] ::1":           "sid[1], sid[2]",
		"srh sid[0] ::1":           "want a number from 1",
		"rt0 addr[0] ::1":          "want a number from 1",
		"ip option bogus exists":   "lsrr, rr, ssrr, ra",
		"tcp option maxseg kind 2": "length, size, exists or missing",
		"tcp option 3 count 5":     "length, exists or missing",
		"tcp option 200 length 1":  "exists or missing",
		"sctp chunk data a 3":      "tsn, stream, ssn, ppid",
		"tcp option @2,0,129 1":    "128",
		"tcp option @2,7,122 1":    "128",
		"tcp option @2,321,8 1":    "320",
	} {
		_, err := CompileRule(nft.FamilyInet, nft.Rule{Text: text}, nil)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(e.Msg, want) {
			t.Errorf("%s: error %v, want %q in it", text, err, want)
		}
	}
}
