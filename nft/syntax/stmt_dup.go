package syntax

// Dup sends a copy of the packet to another host or device.
type Dup struct {
	Pos
	// address, or device in family netdev
	To     Expr
	Device Expr
}

func (p *parser) dup() Stmt {
	d := &Dup{Pos: p.begin()}
	p.OneOf("to")
	d.To = p.value()
	if p.AcceptIdent("device") {
		d.Device = p.value()
	}
	return d
}

func (d *Dup) printStmt(p *printer) {
	p.str("dup to ")
	d.To.printExpr(p)
	if d.Device != nil {
		p.str(" device ")
		d.Device.printExpr(p)
	}
}
