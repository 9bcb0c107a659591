package syntax

// exthdr writes an expression on an extension of a header.
func (p *printer) exthdr(x *Exthdr) {
	if x.Kind != ExthdrIPv6 || x.Field == "" {
		p.str(x.Kind.String())
		p.str(" ")
	}
	if x.Raw {
		p.str("@")
	}
	p.str(x.Name)
	switch {
	case x.Raw:
		p.str(",")
		p.num(uint64(x.Offset))
		p.str(",")
		p.num(uint64(x.Length))
	case x.Field != "":
		p.str(" ")
		p.str(x.Field)
		if x.Index != 0 {
			p.str("[")
			p.num(uint64(x.Index))
			p.str("]")
		}
	}
}
