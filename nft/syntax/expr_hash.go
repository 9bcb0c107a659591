package syntax

// Numgen is a number generator: "numgen random mod 3 offset 1".
type Numgen struct {
	Pos
	// random or inc
	Mode        string
	Mod, Offset uint32
}

// Hash is a hash value: "jhash ip saddr mod 4 seed 0x1 offset 8".
type Hash struct {
	Pos
	X Expr
	// nil if the kernel chooses
	Seed        *uint32
	Mod, Offset uint32
}

func (p *parser) numgen() Expr {
	n := &Numgen{Pos: p.begin()}
	n.Mode = p.OneOf("random", "inc")
	n.Mod = p.modulus()
	n.Offset = p.offset()
	return n
}

func (p *parser) hash() Expr {
	x := &Hash{Pos: p.Tok.Pos}
	sym := p.IsIdent("symhash")
	p.Advance()
	if !sym {
		p.nest()
		assigned := p.assigned
		p.assigned = false
		x.X = p.selector()
		p.assigned = assigned
		p.unnest()
	}
	x.Mod = p.modulus()
	if !sym && p.AcceptIdent("seed") {
		x.Seed = new(p.uint32("a seed"))
	}
	x.Offset = p.offset()
	return x
}

func (p *parser) modulus() uint32 {
	p.OneOf("mod")
	return p.uint32("a modulus")
}

func (p *parser) offset() uint32 {
	if !p.AcceptIdent("offset") {
		return 0
	}
	return p.uint32("an offset")
}

func (x *Numgen) printExpr(p *printer) {
	p.str("numgen ", x.Mode)
	p.option("mod", uint64(x.Mod))
	p.optional("offset", x.Offset)
}

func (x *Hash) printExpr(p *printer) {
	if x.X == nil {
		p.str("symhash")
	} else {
		p.str("jhash ")
		x.X.printExpr(p)
	}
	p.option("mod", uint64(x.Mod))
	given(p, "seed", x.Seed)
	p.optional("offset", x.Offset)
}
