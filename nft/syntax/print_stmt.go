package syntax

import (
	"fmt"
	"strings"
)

// stmt writes a statement.
func (p *printer) stmt(s Stmt) {
	switch s := s.(type) {
	case *Match:
		p.match(s)
	case *Verdict:
		p.verdict(s)
	case *Vmap:
		p.expr(s.Key)
		p.str(" vmap ")
		p.expr(s.Table)
	case *Log:
		p.log(s)
	case *Reject:
		p.reject(s)
	case *NAT:
		p.nat(s)
	case *Assign:
		p.expr(s.Target)
		p.str(" set ")
		p.expr(s.Value)
	case *Dynamic:
		p.str(s.Op)
		p.str(" ")
		p.expr(s.Set)
		p.str(" { ")
		p.elem(s.Elem, true)
		p.str(" }")
	case *Meter:
		p.meter(s)
	case *ResetOption:
		p.str("reset ")
		p.exthdr(s.Option)
	case *Notrack:
		p.str("notrack")
	default:
		if p.stateful(s) || p.divert(s) {
			return
		}
		p.str(fmt.Sprintf("<unknown statement %T>", s))
	}
}

// match writes a comparison. nft(8) writes no "==" but after operations on
// bits, where it needs one.
func (p *printer) match(m *Match) {
	p.expr(m.Left)
	p.str(" ")
	if m.Op != "" {
		p.str(m.Op)
		p.str(" ")
	}
	p.expr(m.Right)
}

// log writes a log statement.
func (p *printer) log(l *Log) {
	p.str("log")
	if l.Prefix != nil {
		p.str(" prefix ")
		p.quote(*l.Prefix)
	}
	if l.Level != "" {
		p.str(" level ")
		p.str(l.Level)
	}
	for _, o := range []struct {
		name string
		n    *uint32
	}{{"group", l.Group}, {"snaplen", l.Snaplen}, {"queue-threshold", l.QueueThreshold}} {
		if o.n != nil {
			p.str(" " + o.name + " ")
			p.num(uint64(*o.n))
		}
	}
	for _, f := range l.Flags {
		p.str(" flags ")
		p.str(f)
	}
}

// limit writes a limit statement.
func (p *printer) limit(l *Limit) {
	p.str("limit rate ")
	if l.Over {
		p.str("over ")
	}
	p.num(l.Rate)
	if l.Unit != "" {
		p.str(" ")
		p.str(l.Unit)
	}
	p.str("/")
	p.str(l.Per)
	if l.BurstUnit != "" {
		p.str(" burst ")
		p.num(l.Burst)
		p.str(" ")
		p.str(l.BurstUnit)
	}
}

// reject writes a reject statement.
func (p *printer) reject(r *Reject) {
	p.str("reject")
	if r.With != "" {
		p.str(" with ")
		p.str(r.With)
	}
	if r.Code != nil {
		p.str(" ")
		p.expr(r.Code)
	}
}

// nat writes a NAT statement.
func (p *printer) nat(n *NAT) {
	p.str(n.Kind)
	if n.Family != "" {
		p.str(" ")
		p.str(n.Family)
	}
	if n.AddrPort {
		p.str(" addr . port")
	}
	if n.Prefix {
		p.str(" prefix")
	}
	if n.Addr != nil || n.Port != nil {
		p.str(" to ")
		p.addrPort(n.Addr, n.Port)
	}
	if len(n.Flags) > 0 {
		p.str(" ")
		p.str(strings.Join(n.Flags, ","))
	}
}
