package eval

import (
	"encoding/binary"
	"fmt"

	google "github.com/google/nftables/expr"

	"github.com/weft-proxy/weft/nft/expr"
)

type span struct{ first, last uint64 }

// randomInterval returns false if another expression could read the number. The next ones must make
// it big-endian, look it up, and decide the verdict or overwrite it.
func (m *machine) randomInterval(r *Rule, what string, register, modulus, offset uint32) bool {
	if len(m.rest) < 2 {
		return false
	}
	order, ok := expr.Unwrap(m.rest[0]).(*google.Byteorder)
	if !ok || order.SourceRegister != register || order.DestRegister != register || order.Len != 4 || order.Size != 4 {
		return false
	}
	e, ok := expr.Unwrap(m.rest[1]).(*google.Lookup)
	if !ok || e.SourceRegister != register || !e.IsDestRegSet || e.Invert {
		return false
	}
	s, ok := m.current.Table.Set(r, e.SetID, e.SetName)
	if !ok || s.Decl.Key.Len != 4 || !s.Decl.Verdict && e.DestRegister != register {
		return false
	}
	spans, ok := m.spans(s, uint64(offset), uint64(offset)+uint64(modulus)-1)
	if !ok {
		return false
	}
	i := m.choose(what, len(spans), 0, func(i int) string { return fmt.Sprintf("%d-%d", spans[i].first, spans[i].last) })
	chosen := spans[i]
	m.out.Choices[len(m.out.Choices)-1].Probability = float64(chosen.last-chosen.first+1) / float64(modulus)
	m.registers.store(register, binary.NativeEndian.AppendUint32(nil, uint32(chosen.first)))
	return true
}

// ok is false for more than maxChoice spans. A number without an interval is its own span.
func (w *passage) spans(s Set, first, last uint64) (spans []span, ok bool) {
	for first <= last {
		if len(spans) == maxChoice {
			return nil, false
		}
		next := span{first, first}
		key := string(binary.BigEndian.AppendUint32(nil, uint32(first)))
		if e, found := w.find(s, key); found && len(e.KeyEnd) == 4 {
			next.last = max(first, min(last, uint64(binary.BigEndian.Uint32([]byte(e.KeyEnd)))))
		}
		spans, first = append(spans, next), next.last+1
	}
	return spans, true
}
