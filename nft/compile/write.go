package compile

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/set"
)

// Write says that packets that run a rule put entries into a map ("add @m
// { ... }", "update @m { ... }").
type Write struct {
	Map string
	// Data is the value of the entries as an Element has it, padded with zeros
	// to a multiple of four bytes: the registers that it comes from are that
	// long. It is empty where Any is true.
	Data string
	// Any is true where the value is known from the packet alone.
	Any bool
}

// Writes reports whether the entry of a map is one that w makes.
func (w *Write) Writes(e *set.Element) bool { return w.Any || w.Data == PadData(e.Data) }

// PadData returns an element's data as a Write has it.
func PadData(data string) string { return data + expr.Zeros[:-len(data)&3] }

// ParseWrites finds the writes of a rule in its expressions, the payload of
// NFTA_RULE_EXPRESSIONS as Encode makes it or as the kernel dumps it. A value is
// known where the dynset expression comes right after the immediate ones that
// load it, which is how constants are compiled.
func ParseWrites(list []byte) ([]Write, error) {
	var writes []Write
	var run immediates
	err := expr.EachAttr(list, func(_ uint16, v []byte) error {
		name, data, err := expr.Unmarshal(v)
		if err != nil {
			return err
		}
		switch name {
		case "immediate":
			return run.add(data)
		case "dynset":
			var d expr.Dynset
			if err := d.Unmarshal(data); err != nil {
				return err
			}
			if d.Data == 0 || d.SetID != 0 || d.Op == expr.NftDynsetDelete {
				break
			}
			w := Write{Map: d.SetName}
			w.Data, w.Any = run.value(d.Data)
			if !slices.Contains(writes, w) {
				writes = append(writes, w)
			}
		}
		run = immediates{}
		return nil
	})
	return writes, err
}

// immediates are the constants that expressions in a row have loaded.
type immediates struct {
	known [registerSlots]bool
	words [registerSlots][4]byte
}

// add reads the attributes of an immediate expression. Verdicts are passed over.
func (r *immediates) add(attributes []byte) error {
	var number uint32
	var value []byte
	err := expr.EachAttr(attributes, func(typ uint16, v []byte) (err error) {
		switch typ {
		case unix.NFTA_IMMEDIATE_DREG:
			number, err = expr.AttrU32(v)
		case unix.NFTA_IMMEDIATE_DATA:
			value, err = expr.AttrData(v)
		}
		return err
	})
	for at := slotOf(number); err == nil && at < registerSlots && len(value) > 0; at++ {
		r.known[at], r.words[at] = true, [4]byte{}
		value = value[copy(r.words[at][:], value):]
	}
	return err
}

// value returns the constant that begins in a register; unknown is true where there
// is none.
func (r *immediates) value(number uint32) (data string, unknown bool) {
	var b []byte
	for at := slotOf(number); at < registerSlots && r.known[at]; at++ {
		b = append(b, r.words[at][:]...)
	}
	return string(b), len(b) == 0
}

// slotOf is the inverse of register.number; registerSlots for the verdict's and
// for what is no register.
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
