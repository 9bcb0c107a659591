package syntax

import (
	"strings"

	"github.com/weft-proxy/weft/nft/internal/scan"
)

// NAT is dnat, snat, masquerade or redirect.
type NAT struct {
	Pos
	Kind   string
	Family string
	// nil if not given; Addr may be a Map to both
	Addr, Port Expr
	// "ip addr . port to", the older form for a map to both
	AddrPort bool
	// "ip prefix to"
	Prefix bool
	// Flags are random, fully-random and persistent. Like in nft, dnat and snat keep only the last
	// group.
	Flags []string
}

var natFlags = []string{"random", "fully-random", "persistent"}

func (p *parser) nat() Stmt {
	n := &NAT{Pos: p.Tok.Pos, Kind: p.Tok.Text}
	p.Advance()
	switch n.Kind {
	case "masquerade", "redirect":
		if p.AcceptIdent("to") {
			if n.Kind == "masquerade" {
				p.ExpectPunct(":")
			} else {
				p.AcceptPunct(":")
			}
			n.Port = p.value()
		}
		if p.Tok.IsWord(natFlags...) {
			n.Flags = p.flagList(nil, natFlags...)
		}
	default:
		p.natTarget(n)
		for p.Tok.IsWord(natFlags...) {
			n.Flags = p.flagList(nil, natFlags...)
		}
	}
	return n
}

func (p *parser) natTarget(n *NAT) {
	if p.Ahead.IsWord("to", "addr", "interval", "prefix") {
		n.Family = p.family()
	}
	switch {
	case n.Family != "" && p.AcceptIdent("addr"):
		p.ExpectPunct(".")
		p.OneOf("port")
		p.OneOf("to")
		n.AddrPort = true
		n.Addr = p.value()
		return
	case p.Tok.IsWord("prefix", "interval") && p.Ahead.IsWord("to"):
		// nft infers the older "interval".
		n.Prefix = p.Tok.Text == "prefix"
		p.Advance()
		p.Advance()
		n.Addr = p.value()
		return
	case n.Family != "":
		p.OneOf("to")
		if p.IsPunct(":") {
			p.Unexpected("an address: a port alone is written without " + n.Family)
		}
	default:
		p.AcceptIdent("to")
	}
	n.Addr, n.Port = p.addrPort()
}

func (p *parser) addrPort() (addr, port Expr) {
	if !p.IsPunct(":") {
		addr = p.value()
	}
	if p.AcceptPunct(":") {
		port = p.value()
	}
	return addr, port
}

func (n *NAT) printStmt(p *printer) {
	p.words(n.Kind, n.Family)
	if n.AddrPort {
		p.str(" addr . port")
	}
	if n.Prefix {
		p.str(" prefix")
	}
	if n.Addr != nil || n.Port != nil {
		p.str(" to ")
		p.addrPort(n.Addr, n.Port)
	}
	p.words("", strings.Join(n.Flags, ","))
}

// One side may be nil.
func (p *printer) addrPort(addr, port Expr) {
	if addr != nil {
		p.brackets = port != nil
		addr.printExpr(p)
		p.brackets = false
	}
	if port == nil {
		return
	}
	_, prefix := addr.(*Prefix)
	if c := lastConst(addr); prefix || c != nil && scan.IsClassID(c.Text+":0") {
		// without a blank, nft(8) reads "24:80" as one word, and the scanner "ab:80" as a traffic
		// class
		p.str(" ")
	}
	p.str(":")
	port.printExpr(p)
}

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
