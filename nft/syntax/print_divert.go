package syntax

import "strings"

// divert writes a statement that sends the packet or its connection elsewhere;
// it reports whether s is one.
func (p *printer) divert(s Stmt) bool {
	switch s := s.(type) {
	case *Queue:
		p.queue(s)
	case *Dup:
		p.str("dup to ")
		p.expr(s.To)
		p.device(s.Device)
	case *Fwd:
		p.fwd(s)
	case *TProxy:
		p.tproxy(s)
	case *SynProxy:
		p.synproxy(s)
	case *FlowAdd:
		p.str("flow add @")
		p.str(s.Flowtable)
	default:
		return false
	}
	return true
}

// queue writes a queue statement.
func (p *printer) queue(q *Queue) {
	p.str("queue")
	if len(q.Flags) > 0 {
		p.str(" ")
		if q.Num != nil {
			p.str("flags ")
		}
		p.str(strings.Join(q.Flags, ","))
	}
	if q.Num != nil {
		p.str(" to ")
		p.expr(q.Num)
	}
}

// device writes the device of dup and fwd.
func (p *printer) device(x Expr) {
	if x != nil {
		p.str(" device ")
		p.expr(x)
	}
}

// fwd writes a fwd statement.
func (p *printer) fwd(f *Fwd) {
	p.str("fwd ")
	if f.Addr == nil {
		p.str("to ")
		p.expr(f.Device)
		return
	}
	p.str(f.Family)
	p.str(" to ")
	p.expr(f.Addr)
	p.device(f.Device)
}

// tproxy writes a tproxy statement.
func (p *printer) tproxy(t *TProxy) {
	p.str("tproxy")
	if t.Family != "" {
		p.str(" ")
		p.str(t.Family)
	}
	p.str(" to ")
	p.addrPort(t.Addr, t.Port)
}

// addrPort writes "ADDR:PORT", of which one may be nil.
func (p *printer) addrPort(addr, port Expr) {
	if addr != nil {
		p.brackets = port != nil
		p.expr(addr)
		p.brackets = false
	}
	if port != nil {
		if _, ok := addr.(*Prefix); ok {
			p.str(" ") // nft(8) reads "24:80" as one word
		}
		if c := lastConst(addr); c != nil && classID(c.Text+":0") > 0 {
			// Such a word and a port would be one word, a class of traffic control.
			p.str(" ")
		}
		p.str(":")
		p.expr(port)
	}
}

// lastConst returns the constant that an expression ends in, or nil.
func lastConst(x Expr) *Const {
	switch x := x.(type) {
	case *Const:
		return x
	case *Range:
		return lastConst(x.To)
	case *Binary:
		return lastConst(x.Y)
	case *Concat:
		return lastConst(x.Parts[len(x.Parts)-1])
	default:
		return nil
	}
}

// synproxy writes a synproxy statement.
func (p *printer) synproxy(s *SynProxy) {
	p.str("synproxy")
	if s.MSS != nil {
		p.str(" mss ")
		p.num(uint64(*s.MSS))
	}
	if s.WScale != nil {
		p.str(" wscale ")
		p.num(uint64(*s.WScale))
	}
	if s.Timestamp {
		p.str(" timestamp")
	}
	if s.SackPerm {
		p.str(" sack-perm")
	}
}
