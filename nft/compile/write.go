package compile

import (
	"slices"

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
}

// Writes reports whether w can have made e, an entry of the map w.Map.
func (w *Write) Writes(e *set.Element) bool { return w.Any || w.Data == PadData(e.Data) }

// PadData pads the data of an element with zeros to a multiple of four bytes, which is the
// length of registers.
func PadData(data string) string { return data + "\x00\x00\x00"[:-len(data)&3] }

// ParseWrites finds the entries that a rule adds to named maps, or updates in them. List is
// the payload of NFTA_RULE_EXPRESSIONS, from Encode or from the kernel. A value is known if
// the dynset expression follows the immediate expressions that load it, which is how
// constants are compiled. The error wraps attr.ErrMalformed.
func ParseWrites(list []byte) ([]Write, error) {
	var writes []Write
	var run immediates
	r := attr.NewReader(list)
	for r.Next() {
		name, data, err := expr.Split(r.Bytes())
		if err != nil {
			return nil, err
		}
		if name == "immediate" {
			if err := run.add(data); err != nil {
				return nil, err
			}
			continue
		}
		if name == "dynset" {
			var d expr.Dynset
			if err := expr.Unmarshal(data, &d); err != nil {
				return nil, err
			}
			if w := (Write{Map: d.SetName}); d.Data != 0 && d.SetID == 0 && d.Op != expr.DynsetDelete {
				w.Data, w.Any = run.value(d.Data)
				if !slices.Contains(writes, w) {
					writes = append(writes, w)
				}
			}
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
