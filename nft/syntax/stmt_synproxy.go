package syntax

// SynProxy answers the first packets of a TCP connection.
type SynProxy struct {
	Pos
	// nil if not given
	MSS                 *uint16
	WScale              *uint8
	Timestamp, SackPerm bool
}

func (p *parser) synproxy() Stmt {
	s := &SynProxy{Pos: p.begin()}
	for p.err == nil {
		switch {
		case p.AcceptIdent("mss"):
			s.MSS = new(uint16(p.ExpectNumber("a segment size", 16)))
		case p.AcceptIdent("wscale"):
			s.WScale = new(uint8(p.ExpectNumber("a window scale", 8)))
		case p.AcceptIdent("timestamp"):
			s.Timestamp = true
		case p.AcceptIdent("sack-perm"):
			s.SackPerm = true
		default:
			return s
		}
	}
	return s
}

func (s *SynProxy) printStmt(p *printer) {
	p.str("synproxy")
	given(p, "mss", s.MSS)
	given(p, "wscale", s.WScale)
	p.synproxyFlags(s.Timestamp, s.SackPerm)
}

func (p *printer) synproxyFlags(timestamp, sackPerm bool) {
	if timestamp {
		p.str(" timestamp")
	}
	if sackPerm {
		p.str(" sack-perm")
	}
}
