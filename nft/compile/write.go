package compile

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/set"
)

// Write is an entry that packets make in a map when they run a rule ("add @m { ... }",
// "update @m { ... }").
type Write struct {
	Map string
	// Data is the value of the entry, padded by PadData. It is empty if Any is true.
	Data string
	// Any is true if the value comes from the packet, so that it can be anything.
	Any bool
	// In is the set that has the value as a key, because the rule looks up the same fields
	// of the packet there before; empty if it does not.
	In string
}

// Writes reports whether w can have made e, an entry of the map w.Map, whatever is in w.In.
func (w *Write) Writes(e *set.Element) bool { return w.Any || w.Data == PadData(e.Data) }

// PadData pads the data of an element with zeros to a multiple of four bytes, which is the
// length of registers.
func PadData(data string) string { return data + "\x00\x00\x00"[:-len(data)&3] }

// ParseWrites finds the entries that a rule adds to named maps, or updates in them. List is
// the payload of NFTA_RULE_EXPRESSIONS, from Encode or from the kernel. A value is known if
// the dynset expression follows the immediate expressions that load it, which is how
// constants are compiled; and fields of the packet, if payload expressions load them. The
// error wraps attr.ErrMalformed.
func ParseWrites(list []byte) ([]Write, error) {
	var writes []Write
	var run immediates
	var loaded fields
	r := attr.NewReader(list)
	for r.Next() {
		name, data, err := expr.Split(r.Bytes())
		if err != nil {
			return nil, err
		}
		switch name {
		case "immediate":
			if err := run.add(data); err != nil {
				return nil, err
			}
			continue
		case "payload":
			err = loaded.load(data)
		case "lookup":
			err = loaded.lookup(data)
		case "dynset":
			var d expr.Dynset
			if err := expr.Unmarshal(data, &d); err != nil {
				return nil, err
			}
			if w := (Write{Map: d.SetName}); d.Data != 0 && d.SetID == 0 && d.Op != expr.DynsetDelete {
				w.Data, w.Any = run.value(d.Data)
				if w.Any {
					w.In = loaded.in(d.Data)
				}
				if !slices.Contains(writes, w) {
					writes = append(writes, w)
				}
			}
		default:
			// It may change registers.
			loaded.words = [registerSlots]field{}
		}
		if err != nil {
			return nil, err
		}
		run = immediates{}
	}
	return writes, r.Err()
}

// immediates are the constants that expressions in a row have loaded.
type immediates struct {
	known [registerSlots]bool
	words [registerSlots][4]byte
}

// add reads the attributes of an immediate expression. It ignores verdicts.
func (m *immediates) add(attributes []byte) error {
	var number uint32
	var value []byte
	r := attr.NewReader(attributes)
	for r.Next() {
		switch r.Type() {
		case unix.NFTA_IMMEDIATE_DREG:
			number = r.Uint32BE()
		case unix.NFTA_IMMEDIATE_DATA:
			value = expr.Data(&r)
		}
	}
	for at := slotOf(number); at < registerSlots && len(value) > 0; at++ {
		m.known[at], m.words[at] = true, [4]byte{}
		value = value[copy(m.words[at][:], value):]
	}
	return r.Err()
}

// value returns the constant that begins in a register. Unknown is true if there is none.
func (m *immediates) value(number uint32) (data string, unknown bool) {
	var b []byte
	for at := slotOf(number); at < registerSlots && m.known[at]; at++ {
		b = append(b, m.words[at][:]...)
	}
	return string(b), len(b) == 0
}

// fields are the fields of the packet that expressions have loaded.
type fields struct {
	words [registerSlots]field
	// looked are the fields that a rule has found in the set in.
	looked []field
	set    string
}

// field is a part of the packet that fits a register. Its zero value is none.
type field struct{ base, offset, length uint32 }

// load reads the attributes of a payload expression.
func (f *fields) load(attributes []byte) error {
	var number uint32
	var of field
	r := attr.NewReader(attributes)
	for r.Next() {
		switch r.Type() {
		case unix.NFTA_PAYLOAD_DREG:
			number = r.Uint32BE()
		case unix.NFTA_PAYLOAD_BASE:
			of.base = r.Uint32BE()
		case unix.NFTA_PAYLOAD_OFFSET:
			of.offset = r.Uint32BE()
		case unix.NFTA_PAYLOAD_LEN:
			of.length = r.Uint32BE()
		case unix.NFTA_PAYLOAD_SREG:
			f.looked = nil // the packet changes
		}
	}
	for at := slotOf(number); at < registerSlots && of.length > 0; at++ {
		f.words[at] = field{of.base, of.offset, min(of.length, 4)}
		of.offset, of.length = of.offset+4, of.length-min(of.length, 4)
	}
	return r.Err()
}

// lookup reads the attributes of a lookup expression. What it looked up is not in the
// registers for later expressions.
func (f *fields) lookup(attributes []byte) error {
	var number uint32
	var name string
	matches := true
	r := attr.NewReader(attributes)
	for r.Next() {
		switch r.Type() {
		case unix.NFTA_LOOKUP_SREG:
			number = r.Uint32BE()
		case unix.NFTA_LOOKUP_SET:
			name = r.Text()
		case unix.NFTA_LOOKUP_DREG:
			matches = false
		case unix.NFTA_LOOKUP_FLAGS:
			matches = matches && r.Uint32BE() == 0
		}
	}
	if matches && !strings.HasPrefix(name, "__") { // not an anonymous set
		f.looked, f.set = f.from(number), name
	}
	f.words = [registerSlots]field{}
	return r.Err()
}

// from returns the fields in a register and those after it.
func (f *fields) from(number uint32) (out []field) {
	for at := slotOf(number); at < registerSlots && f.words[at].length > 0; at++ {
		out = append(out, f.words[at])
	}
	return out
}

// in returns the set in which the rule has found the fields in a register; empty for none.
func (f *fields) in(number uint32) string {
	if is := f.from(number); len(is) > 0 && slices.Equal(is, f.looked) {
		return f.set
	}
	return ""
}

// slotOf is the inverse of register.number; registerSlots for the verdict's and
// for any other value.
func slotOf(number uint32) uint32 {
	switch {
	case number >= 1 && number <= 4:
		return 4 * (number - 1)
	case number >= 8 && number < 8+registerSlots:
		return number - 8
	default:
		return registerSlots
	}
}
