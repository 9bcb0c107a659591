package syntax

import "slices"

// Meta is packet metadata: "meta mark", "iifname".
type Meta struct {
	Pos
	Key string
	// equals Pos without "meta"
	KeyPos Pos
}

// CT is conntrack information: "ct state", "ct original ip saddr".
type CT struct {
	Pos
	// original, reply or empty
	Dir string
	// ip, ip6 or empty
	L3     string
	Key    string
	KeyPos Pos
}

// need no "meta" before them
var metaKeys = []string{
	"mark", "iif", "iifname", "iiftype", "oif", "oifname", "oiftype", "skuid", "skgid", "nftrace", "rtclassid",
	"ibriport", "ibrname", "obriport", "obrname", "pkttype", "cpu", "iifgroup", "oifgroup", "cgroup", "ipsec",
	"time", "day", "hour",
}

// nft lists them without "meta"
var bareMetaKeys = []string{"iif", "iifname", "iiftype", "oif", "oifname", "oiftype", "iifgroup", "oifgroup"}

func (p *parser) meta() Expr {
	x := &Meta{Pos: p.Tok.Pos}
	p.AcceptIdent("meta")
	x.KeyPos = p.Tok.Pos
	x.Key = p.ExpectIdent("a meta key")
	return x
}

func (x *Meta) printExpr(p *printer) {
	if !slices.Contains(bareMetaKeys, x.Key) {
		p.str("meta ")
	}
	p.str(x.Key)
}

func (p *parser) ct() Expr {
	c := &CT{Pos: p.begin()}
	if p.IsIdent("original") || p.IsIdent("reply") {
		c.Dir = p.ExpectIdent("a direction")
		c.L3 = p.family()
	}
	c.KeyPos = p.Tok.Pos
	c.Key = p.ExpectIdent("a ct key")
	return c
}

func (x *CT) printExpr(p *printer) { p.words("ct", x.Dir, x.L3, x.Key) }
