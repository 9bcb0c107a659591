package eval

import (
	"strings"

	google "github.com/google/nftables/expr"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/set"
)

func (m *machine) lookup(r *Rule, e *google.Lookup) {
	s, ok := m.current.Table.Set(r, e.SetID, e.SetName)
	if !ok {
		undecided("set %s does not exist", e.SetName)
	}
	key := string(m.registers.at(e.SourceRegister, s.Decl.Key.Len))
	found, ok := m.find(s, key)
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

type changedKey struct {
	table    nft.TableID
	set, key string
}

func (w *passage) find(s Set, key string) (set.Element, bool) {
	if e, ok := w.changed[changedKey{w.current.Table.ID, s.Decl.Name, key}]; ok {
		if e == nil {
			return set.Element{}, false
		}
		return *e, true
	}
	return s.find(key)
}

// An existing element keeps its data.
func (m *machine) dynset(r *Rule, e *expr.Dynset) {
	s, ok := m.current.Table.Set(r, e.SetID, e.SetName)
	if !ok {
		undecided("set %s does not exist", e.SetName)
	}
	for _, x := range e.Exprs {
		if _, counts := expr.Unwrap(x).(*google.Counter); !counts {
			m.unknown(e)
		}
	}
	key := string(m.registers.at(e.Key, s.Decl.Key.Len))
	element, exists := m.find(s, key)
	if !exists {
		element = set.Element{Key: key}
		if e.Data != 0 {
			element.Data = string(m.registers.at(e.Data, s.Decl.Data.Len))
		}
	}
	if m.changed == nil {
		m.changed = make(map[changedKey]*set.Element)
	}
	change := &element
	if e.Op == expr.DynsetDelete {
		change = nil
	}
	m.changed[changedKey{m.current.Table.ID, s.Decl.Name, key}] = change
}

// find rejects elements with statements other than counters: they can end the rule.
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
