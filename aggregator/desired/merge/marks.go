package merge

import "github.com/weft-proxy/weft/aggregator/desired"

// marks are the places of changes: since the last Accept, and (serial, checks) of the running change.
type marks struct {
	Dirty  []*Table
	checks []check
	// serial never restarts.
	serial uint64
	Looked desired.Work
}

func (m *marks) MarkTable(t *Table) {
	if !t.dirty {
		t.dirty = true
		m.Dirty = append(m.Dirty, t)
	}
}

func (m *marks) Mark(o Part) {
	if n := o.Base(); !n.Dirty {
		n.Dirty = true
		n.Table.DirtyParts = append(n.Table.DirtyParts, o)
		m.MarkTable(n.Table)
	}
}

// check is a part to check after the running change. old is its declaration before, or nil.
type check struct {
	Part
	old any
}

// queue adds a check once, before the declaration changes.
func (m *marks) queue(o Part) {
	n := o.Base()
	if n.queued == m.serial {
		return
	}
	n.queued = m.serial
	c := check{Part: o}
	if o.Exists() {
		c.old = o.Declared()
	}
	m.checks = append(m.checks, c)
}

// Marking lets the next Accept or Rollback forget a missing target.
func (m *marks) refer(o Part, by int) {
	o.Base().Refs += by
	if !o.Exists() {
		m.Mark(o)
	}
	if by > 0 {
		m.queue(o)
	}
}
