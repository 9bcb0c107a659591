package syntax

// Fwd forwards the packet to a device.
type Fwd struct {
	Pos
	// with an Addr, otherwise empty
	Family string
	// neighbour, nil if not given
	Addr   Expr
	Device Expr
}

func (p *parser) fwd() Stmt {
	f := &Fwd{Pos: p.begin()}
	f.Family = p.family()
	p.OneOf("to")
	if f.Family != "" {
		f.Addr = p.value()
		p.OneOf("device")
	}
	f.Device = p.value()
	return f
}

func (f *Fwd) printStmt(p *printer) {
	p.words("fwd", f.Family, "to ")
	if f.Addr != nil {
		f.Addr.printExpr(p)
		p.str(" device ")
	}
	f.Device.printExpr(p)
}
