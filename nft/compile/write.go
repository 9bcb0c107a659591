package compile

import (
	"slices"
	"strings"

	google "github.com/google/nftables/expr"
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
			loaded.words = [registerSlots]google.Payload{}
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
	// words have the base, offset and length of what a register has; a length of 0 is none.
	words [registerSlots]google.Payload
	// looked are the fields that a rule has found in a set.
	looked []google.Payload
	set    string
}

// load reads the attributes of a payload expression.
func (f *fields) load(attributes []byte) error {
	var p google.Payload
	err := expr.Unmarshal(attributes, expr.Library{Any: &p})
	if p.DestRegister == 0 {
		f.looked = nil // the packet changes
	}
	for at := slotOf(p.DestRegister); at < registerSlots && p.Len > 0; at++ {
		n := min(p.Len, 4)
		f.words[at] = google.Payload{Base: p.Base, Offset: p.Offset, Len: n}
		p.Offset, p.Len = p.Offset+n, p.Len-n
	}
	return err
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
	f.words = [registerSlots]google.Payload{}
	return r.Err()
}

// from returns the fields in a register and those after it.
func (f *fields) from(number uint32) (out []google.Payload) {
	for at := slotOf(number); at < registerSlots && f.words[at].Len > 0; at++ {
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
