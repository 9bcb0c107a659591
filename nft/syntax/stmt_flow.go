package syntax

// FlowAdd adds the connection to a flowtable: "flow add @f".
type FlowAdd struct {
	Pos
	Flowtable string
	NamePos   Pos
}

// "flow offload" is the older "flow add", "flow table" the old name of a meter.
func (p *parser) flow() Stmt {
	if p.Ahead.IsWord("table") {
		p.Advance()
		return p.meter()
	}
	f := &FlowAdd{Pos: p.begin()}
	p.OneOf("add", "offload")
	p.ExpectPunct("@")
	f.NamePos = p.Tok.Pos
	f.Flowtable = p.ExpectText("the name of a flowtable in double quotes")
	return f
}

func (f *FlowAdd) printStmt(p *printer) { p.str("flow add @", f.Flowtable) }
