package syntax

import (
	"strings"

	"github.com/weft-proxy/weft/nft/datatype"
)

// Limit matches until a rate is reached, or above with Over. As an object's body without a rate,
// Per is empty.
type Limit struct {
	Pos
	Over bool
	// packets, or a Unit of datatype.ByteUnits
	Rate uint64
	Unit string
	// of datatype.TimeUnits
	Per string
	// BurstUnit: packets or one of datatype.ByteUnits; empty without a burst
	Burst     uint64
	BurstUnit string
}

func (p *parser) limit() Stmt {
	l := &Limit{Pos: p.begin()}
	l.parseRate(p)
	return l
}

func (l *Limit) parseRate(p *parser) {
	p.OneOf("rate")
	l.Over = p.AcceptIdent("over")
	l.Rate = p.ExpectNumber("a rate", 64)
	if p.AcceptPunct("/") {
		l.Per = p.OneOf(datatype.TimeUnits.Names()...)
	} else {
		l.parseUnits(p)
	}
	if p.AcceptIdent("burst") {
		l.Burst = p.ExpectNumber("a burst", 32)
		l.BurstUnit = p.OneOf(append([]string{"packets"}, datatype.ByteUnits.Names()...)...)
	}
}

// "bytes/second" is one token.
func (l *Limit) parseUnits(p *parser) {
	at := p.Tok
	word := p.ExpectIdent("/second, /minute, ..., or bytes/second")
	var ok bool
	if l.Unit, l.Per, ok = strings.Cut(word, "/"); !ok {
		p.ExpectPunct("/")
	}
	if l.Per == "" {
		l.Per = p.OneOf(datatype.TimeUnits.Names()...)
	}
	_, isBytes := datatype.ByteUnits.Size(l.Unit)
	if _, isTime := datatype.TimeUnits.Size(l.Per); !isBytes || !isTime {
		p.Fail(at, "unknown rate unit %q: want bytes, kbytes or mbytes per second, minute, hour, day or week", word)
	}
}

func (l *Limit) printStmt(p *printer) {
	p.str("limit ")
	l.printBody(p)
}

func (l *Limit) parseBody(p *parser) {
	*l = Limit{Pos: p.Tok.Pos}
	l.parseRate(p)
}

func (l *Limit) printBody(p *printer) {
	if l.Per == "" {
		return
	}
	p.str("rate ")
	p.over(l.Over)
	p.num(l.Rate)
	p.words("", l.Unit)
	p.str("/", l.Per)
	if l.BurstUnit != "" {
		p.option("burst", l.Burst)
		p.str(" ", l.BurstUnit)
	}
}
