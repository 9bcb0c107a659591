package syntax

import "github.com/weft-proxy/weft/nft"

// stateful writes a statement that keeps a state, in the rule itself or in a
// named object; it reports whether s is one.
func (p *printer) stateful(s Stmt) bool {
	switch s := s.(type) {
	case *Counter:
		p.counter(s)
	case *Limit:
		p.limit(s)
	case *Quota:
		p.quota(s)
	case *ConnLimit:
		p.str("ct count ")
		if s.Over {
			p.str("over ")
		}
		p.num(uint64(s.Count))
	case *ObjectRef:
		p.objectRef(s)
	default:
		return false
	}
	return true
}

// counter writes a counter statement.
func (p *printer) counter(c *Counter) {
	p.str("counter")
	if c.Packets != 0 || c.Bytes != 0 {
		p.str(" packets ")
		p.num(c.Packets)
		p.str(" bytes ")
		p.num(c.Bytes)
	}
}

// quota writes a quota statement.
func (p *printer) quota(q *Quota) {
	p.str("quota ")
	if q.Over {
		p.str("over ")
	}
	p.num(q.Bytes)
	p.str(" ")
	p.str(q.Unit)
	if q.UsedUnit != "" {
		p.str(" used ")
		p.num(q.Used)
		p.str(" ")
		p.str(q.UsedUnit)
	}
}

// objectRef writes the use of a named object.
func (p *printer) objectRef(s *ObjectRef) {
	switch s.Kind {
	case nft.ObjectCTHelper, nft.ObjectCTTimeout, nft.ObjectCTExpectation:
		p.str(string(s.Kind))
		p.str(" set ")
	case nft.ObjectSecMark:
		p.str("meta secmark set ")
	default:
		p.str(string(s.Kind))
		p.str(" name ")
	}
	p.expr(s.Ref)
}
