package eval

import (
	google "github.com/google/nftables/expr"

	"github.com/weft-proxy/weft/nft/set"
)

// lookup searches a set or map.
func (m *machine) lookup(r *Rule, e *google.Lookup) {
	s, ok := m.current.table.set(r, e.SetID, e.SetName)
	if !ok {
		undecided("set %s does not exist", e.SetName)
	}
	key := string(m.registers.at(e.SourceRegister, s.Decl.Key.Len))
	found, ok := s.find(key)
	m.lookups = append(m.lookups, Lookup{Set: s.Decl.Name, Key: key, Element: found, Found: ok})
	if ok == e.Invert {
		m.breakIf(true)
		return
	}
	if !ok || !e.IsDestRegSet {
		return
	}
	if !s.Decl.Verdict {
		m.registers.store(e.DestRegister, []byte(found.Data))
		return
	}
	v, err := set.ParseVerdictData(found.Data)
	if err != nil {
		undecided("set %s: %v", s.Decl.Name, err)
	}
	m.verdict = v
}

// find returns the element of a key. The catch-all element is the last resort. An element with
// statements ends the evaluation, because they can end the rule.
func (s Set) find(key string) (found set.Element, ok bool) {
	for _, e := range s.Elements {
		switch {
		case e.Key == "":
			if !ok {
				found, ok = e, true
			}
		case s.matches(e, key):
			found, ok = e, true
		default:
			continue
		}
		if e.Key != "" {
			break
		}
	}
	if ok {
		for _, text := range found.Stateful() {
			if text != "counter" && len(text) > 8 && text[:8] != "counter " {
				undecided("element with the statement %q", text)
			}
		}
	}
	return found, ok
}

// matches reports whether a key is in an element: each part of a concatenation is in its range.
func (s Set) matches(e set.Element, key string) bool {
	if e.KeyEnd == "" {
		return e.Key == key
	}
	if len(s.Decl.Key.Fields) == 0 {
		return e.Key <= key && key <= e.KeyEnd
	}
	at := 0
	for _, n := range s.Decl.Key.Fields {
		to := at + int(n)
		if key[at:to] < e.Key[at:to] || key[at:to] > e.KeyEnd[at:to] {
			return false
		}
		at += (int(n) + 3) &^ 3
	}
	return true
}
