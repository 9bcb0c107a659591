package syntax

import "strings"

// FIB is a lookup in the routing table: "fib daddr . iif type".
type FIB struct {
	Pos
	Inputs []string
	Result string
}

// Rt is a property of the packet's route: "rt nexthop", "rt mtu".
type Rt struct {
	Pos
	// ip, ip6 or empty
	Family string
	Key    string
	KeyPos Pos
}

// Socket is a property of the packet's socket: "socket transparent".
type Socket struct {
	Pos
	Key    string
	KeyPos Pos
	Level  uint32
}

// OSF is the operating system of the sender of a TCP SYN: "osf name".
type OSF struct {
	Pos
	// comparison of the TTL: loose, skip, or empty for exact
	TTL string
	// name or version
	Key string
}

// IPsec is a state of a packet's IPsec transformation: "ipsec in spnum 1 reqid".
type IPsec struct {
	Pos
	Dir string
	// from 0
	Spnum uint32
	// for addresses, otherwise empty
	L3  string
	Key string
}

func (p *parser) fib() Expr {
	f := &FIB{Pos: p.begin()}
	for {
		f.Inputs = append(f.Inputs, p.OneOf("saddr", "daddr", "mark", "iif", "oif"))
		if !p.AcceptPunct(".") {
			break
		}
	}
	if p.IsIdent("check") && p.Ahead.IsWord("exists", "missing") {
		// "check" of nft 1.1.4 is "oif" of earlier versions.
		p.Tok.Text = "oif"
	}
	if p.IsIdent("check") {
		p.Fail(p.Tok, "nft 1.1.4 has fib check as a value; weft has only \"check exists\" and \"check missing\"")
	}
	f.Result = p.OneOf("oifname", "oif", "type")
	return f
}

func (p *parser) rt() Expr {
	x := &Rt{Pos: p.begin()}
	x.Family = p.family()
	x.KeyPos = p.Tok.Pos
	x.Key = p.OneOf("classid", "nexthop", "mtu", "ipsec")
	return x
}

func (p *parser) socket() Expr {
	x := &Socket{Pos: p.begin()}
	x.KeyPos = p.Tok.Pos
	x.Key = p.OneOf("transparent", "mark", "wildcard", "cgroupv2")
	if x.Key == "cgroupv2" {
		p.OneOf("level")
		x.Level = p.uint32("a level")
	}
	return x
}

func (p *parser) osf() Expr {
	x := &OSF{Pos: p.begin()}
	if p.AcceptIdent("ttl") {
		x.TTL = p.OneOf("loose", "skip")
	}
	x.Key = p.OneOf("name", "version")
	return x
}

func (p *parser) ipsec() Expr {
	x := &IPsec{Pos: p.begin()}
	x.Dir = p.OneOf("in", "out")
	if p.AcceptIdent("spnum") {
		x.Spnum = uint32(p.ExpectNumber("the number of a state", 8))
	}
	if x.L3 = p.family(); x.L3 != "" {
		x.Key = p.OneOf("saddr", "daddr")
	} else {
		x.Key = p.OneOf("spi", "reqid", "ip", "ip6")
	}
	return x
}

func (x *FIB) printExpr(p *printer) { p.words("fib", strings.Join(x.Inputs, " . "), x.Result) }
func (x *Rt) printExpr(p *printer)  { p.words("rt", x.Family, x.Key) }

func (x *Socket) printExpr(p *printer) {
	p.words("socket", x.Key)
	if x.Key == "cgroupv2" {
		p.option("level", uint64(x.Level))
	}
}

func (x *OSF) printExpr(p *printer) {
	p.str("osf")
	if x.TTL != "" {
		p.str(" ttl ", x.TTL)
	}
	p.str(" ", x.Key)
}

func (x *IPsec) printExpr(p *printer) {
	p.words("ipsec", x.Dir)
	p.optional("spnum", x.Spnum)
	p.words("", x.L3, x.Key)
}
