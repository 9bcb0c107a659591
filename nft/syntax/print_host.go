package syntax

// host writes a selector that asks the host.
func (p *printer) host(x Expr) {
	switch x := x.(type) {
	case *Rt:
		p.words("rt", x.Family, x.Key)
	case *Socket:
		p.words("socket", x.Key)
		if x.Key == "cgroupv2" {
			p.str(" level ")
			p.num(uint64(x.Level))
		}
	case *OSF:
		p.str("osf")
		if x.TTL != "" {
			p.words(" ttl", x.TTL)
		}
		p.words("", x.Key)
	case *IPsec:
		p.words("ipsec", x.Dir)
		if x.Spnum != 0 {
			p.str(" spnum ")
			p.num(uint64(x.Spnum))
		}
		p.words("", x.L3, x.Key)
	case *Hash:
		p.hash(x)
	}
}

// words writes a word and, with a blank before each, the others that are not
// empty.
func (p *printer) words(first string, more ...string) {
	p.str(first)
	for _, w := range more {
		if w != "" {
			p.str(" ")
			p.str(w)
		}
	}
}

// hash writes a hash value.
func (p *printer) hash(x *Hash) {
	if x.X == nil {
		p.str("symhash")
	} else {
		p.str("jhash ")
		p.expr(x.X)
	}
	p.str(" mod ")
	p.num(uint64(x.Mod))
	if x.Seed != nil {
		p.str(" seed ")
		p.num(uint64(*x.Seed))
	}
	if x.Offset != 0 {
		p.str(" offset ")
		p.num(uint64(x.Offset))
	}
}
