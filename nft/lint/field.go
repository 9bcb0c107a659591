package lint

import "bytes"

type field struct {
	value [64]byte
	// bits required by rules, and bits chosen freely
	required, chosen [64]byte
	// a rule writes the field: later rules do not compare the original value
	changed bool
}

// (bytes & mask) ^ xor of a register
type operand struct {
	field     *field
	at        int
	mask, xor []byte
}

func newOperand(f *field, at, n int) (operand, bool) {
	if at < 0 || n <= 0 || at+n > len(f.value) {
		return operand{}, false
	}
	return operand{f, at, bytes.Repeat([]byte{0xff}, n), make([]byte, n)}, true
}

func (o operand) masked(mask, xor []byte) (operand, bool) {
	n := len(o.mask)
	if len(mask) < n || len(xor) < n {
		return operand{}, false
	}
	out := operand{o.field, o.at, make([]byte, n), make([]byte, n)}
	for i := range n {
		out.mask[i] = o.mask[i] & mask[i]
		out.xor[i] = o.xor[i]&mask[i] ^ xor[i]
	}
	return out, true
}

func (o operand) could(data []byte) bool {
	for i, b := range data[:min(len(data), len(o.mask))] {
		want := b ^ o.xor[i]
		if want&^o.mask[i] != 0 || (o.field.value[o.at+i]^want)&o.mask[i]&o.field.required[o.at+i] != 0 {
			return false
		}
	}
	return true
}

// Required bits stay required.
func (o operand) set(data []byte, required bool) {
	f := o.field
	for i, b := range data[:min(len(data), len(o.mask))] {
		at, m := o.at+i, o.mask[i]
		f.value[at] = f.value[at]&^m | (b^o.xor[i])&m
		if required {
			f.required[at] |= m
		} else {
			f.chosen[at] |= m
		}
	}
}

// known: all bits are decided; final: all are required.
func (o operand) known(n int) (data []byte, known, final bool) {
	f := o.field
	n = min(n, len(o.mask))
	data, known, final = make([]byte, n), true, true
	for i := range n {
		at, m := o.at+i, o.mask[i]
		data[i] = f.value[at]&m ^ o.xor[i]
		final = final && m&^f.required[at] == 0
		known = known && m&^(f.required[at]|f.chosen[at]) == 0
	}
	return data, known, final
}

func (f *field) has(at, n int) bool {
	for i := at; i < at+n; i++ {
		if f.required[i]|f.chosen[i] != 0 {
			return true
		}
	}
	return false
}

func (f *field) overlay(data []byte) {
	for i := range data[:min(len(data), len(f.value))] {
		m := f.required[i] | f.chosen[i]
		data[i] = data[i]&^m | f.value[i]&m
	}
}
