package eval

import (
	"strings"

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

// find returns the element of a key. An element with statements ends the evaluation, because
// they can end the rule.
func (s Set) find(key string) (found set.Element, ok bool) {
	found, ok, err := s.Elements.Find(key)
	if err != nil {
		undecided("set %s cannot be read: %v", s.Decl.Name, err)
	}
	if ok {
		for _, text := range found.Stateful() {
			if text != "counter" && !strings.HasPrefix(text, "counter ") {
				undecided("element with the statement %q", text)
			}
		}
	}
	return found, ok
}
