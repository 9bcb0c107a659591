package render

import (
	"slices"
	"strconv"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/policy/model"
)

const (
	// In a patch: new members of a set, and the total objects.size of declared objects.
	manyMembers = 4096
	manyObjects = 4096
	separator   = " . "
)

type members struct {
	id          model.SetID
	declaration *weftv1.Set
	ports       bool
	state       map[model.Member]memberState
	changed     []model.Member // possible differences from the kernel, with duplicates
	missing     int            // not yet in the kernel
	// Removed from the model: the chains with this set will go.
	gone bool
	// After the first member. Until then no rule names the set; waiting are the policies with these
	// rules.
	filled   bool
	waiting  map[model.PolicyID]struct{}
	denied   bool                // by a rule that does not accept
	previous map[string]struct{} // keys left by an earlier process
}

type memberState uint8

const (
	inModel memberState = 1 << iota
	inKernel
)

func (m *members) change(added, removed []model.Member) {
	for _, k := range removed {
		s := m.state[k]
		if s&inModel == 0 {
			continue
		}
		if s&inKernel == 0 {
			m.missing--
			delete(m.state, k)
			continue
		}
		m.state[k] = inKernel
		m.changed = append(m.changed, k)
	}
	for _, k := range added {
		s := m.state[k]
		if s&inModel != 0 {
			continue
		}
		m.state[k] = s | inModel
		if s&inKernel == 0 {
			m.missing++
			m.changed = append(m.changed, k)
		}
	}
}

// withdraw notes that the kernel has lost the set.
func (m *members) withdraw() {
	m.changed, m.previous = nil, nil
	for k, s := range m.state {
		if s&inModel == 0 {
			delete(m.state, k)
			continue
		}
		m.state[k] = inModel
		m.changed = append(m.changed, k)
	}
	slices.SortFunc(m.changed, model.CompareMembers)
	m.missing = len(m.state)
}

func (m *members) remove() {
	m.gone, m.changed, m.missing = true, nil, 0
	for k, s := range m.state {
		if s&inKernel == 0 {
			delete(m.state, k)
		} else {
			m.state[k] = inKernel
		}
	}
}

func (m *members) restore() {
	m.gone, m.changed = false, nil
	for k := range m.state {
		m.changed = append(m.changed, k)
	}
	slices.SortFunc(m.changed, model.CompareMembers)
}

func (m *members) flush() (add, remove []model.Member) {
	if m.gone || len(m.changed) == 0 {
		return nil, nil
	}
	room := manyMembers
	rest := m.changed[:0]
	for _, k := range m.changed {
		switch m.state[k] {
		case inModel:
			if room == 0 {
				rest = append(rest, k)
				continue
			}
			if !m.had(k) {
				room--
			}
			m.state[k] = inModel | inKernel
			m.missing--
			add = append(add, k)
		case inKernel:
			delete(m.state, k)
			remove = append(remove, k)
		}
	}
	if m.changed = rest; len(rest) == 0 {
		m.changed, m.previous = nil, nil
	}
	return add, remove
}

func (m *members) had(k model.Member) bool {
	if m.previous == nil {
		return false
	}
	_, had := m.previous[m.key(k)]
	return had
}

func (m *members) key(k model.Member) string {
	var scratch [80]byte
	b := k.Addr.AppendTo(scratch[:0])
	if m.ports {
		b = append(append(append(b, separator...), k.Protocol.String()...), separator...)
		b = strconv.AppendUint(b, uint64(k.Port), 10)
	}
	return string(b)
}

func (m *members) inForce() []model.Member {
	out := make([]model.Member, 0, len(m.state))
	for k, s := range m.state {
		if s&inKernel != 0 {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, model.CompareMembers)
	return out
}
