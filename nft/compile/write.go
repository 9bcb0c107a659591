package compile

import (
	"slices"
	"strings"

	google "github.com/google/nftables/expr"

	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/set"
)

// Write is a map entry made by packets in a rule ("add @m { ... }", "update @m { ... }").
type Write struct {
	Map string
	// padded by PadData, empty if Any
	Data string
	// from the packet
	Any bool
	// In is a set with the value as a key: the rule looks up the same packet fields there before
	// the write. Empty without such a lookup.
	In string
}

// Writes reports whether w can have made e, an entry of the map w.Map. It ignores w.In.
func (w *Write) Writes(e *set.Element) bool { return w.Any || w.Data == PadData(e.Data) }

// PadData pads data with zeros to a multiple of four bytes, the length of registers.
func PadData(data string) string { return data + "\x00\x00\x00"[:-len(data)&3] }

// ParseWrites returns the map entries that a kernel rule adds or updates. List is the payload of
// NFTA_RULE_EXPRESSIONS. The error wraps attr.ErrMalformed.
func ParseWrites(list []byte) ([]Write, error) {
	exprs, err := expr.Decode(list)
	if err != nil {
		return nil, err
	}
	return writesOf(exprs), nil
}

// Constants are known if their immediate expressions directly precede the dynset expression, as in
// compiled rules. Packet fields are known if payload expressions load them.
func writesOf(exprs []expr.Expr) (writes []Write) {
	var run immediates
	var loaded fields
	for _, e := range exprs {
		switch e := expr.Unwrap(e).(type) {
		case *google.Immediate:
			run.add(e)
			continue
		case *google.Verdict:
			continue
		case *google.Payload:
			loaded.load(*e)
		case *expr.PayloadWrite:
			loaded.looked = nil // the packet changes
		case *google.Lookup:
			loaded.lookup(e)
		case *expr.Dynset:
			if w := (Write{Map: e.SetName}); e.Data != 0 && e.SetID == 0 && e.Op != expr.DynsetDelete {
				w.Data, w.Any = run.value(e.Data)
				if w.Any {
					w.In = loaded.in(e.Data)
				}
				if !slices.Contains(writes, w) {
					writes = append(writes, w)
				}
			}
		default:
			// another expression may change registers
			loaded.words = [expr.Slots]google.Payload{}
		}
		run = immediates{}
	}
	return writes
}

// constants loaded by consecutive expressions
type immediates struct {
	known [expr.Slots]bool
	words [expr.Slots][4]byte
}

func (m *immediates) add(e *google.Immediate) {
	at, _ := expr.Slot(e.Register)
	for value := e.Data; at < expr.Slots && len(value) > 0; at++ {
		m.known[at], m.words[at] = true, [4]byte{}
		value = value[copy(m.words[at][:], value):]
	}
}

func (m *immediates) value(register uint32) (data string, unknown bool) {
	var b []byte
	for at, _ := expr.Slot(register); at < expr.Slots && m.known[at]; at++ {
		b = append(b, m.words[at][:]...)
	}
	return string(b), len(b) == 0
}

type fields struct {
	// length 0: unknown
	words  [expr.Slots]google.Payload
	looked []google.Payload
	set    string
}

func (f *fields) load(p google.Payload) {
	for at, _ := expr.Slot(p.DestRegister); at < expr.Slots && p.Len > 0; at++ {
		n := min(p.Len, 4)
		f.words[at] = google.Payload{Base: p.Base, Offset: p.Offset, Len: n}
		p.Offset, p.Len = p.Offset+n, p.Len-n
	}
}

// lookup records the fields found in a named set, and clears the known registers.
func (f *fields) lookup(e *google.Lookup) {
	if !e.IsDestRegSet && !e.Invert && !strings.HasPrefix(e.SetName, "__") { // not an anonymous set
		f.looked, f.set = f.from(e.SourceRegister), e.SetName
	}
	f.words = [expr.Slots]google.Payload{}
}

func (f *fields) from(register uint32) (out []google.Payload) {
	for at, _ := expr.Slot(register); at < expr.Slots && f.words[at].Len > 0; at++ {
		out = append(out, f.words[at])
	}
	return out
}

// in returns the set in which the rule has found the fields of a register, or "".
func (f *fields) in(register uint32) string {
	if is := f.from(register); len(is) > 0 && slices.Equal(is, f.looked) {
		return f.set
	}
	return ""
}
