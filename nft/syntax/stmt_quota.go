package syntax

import "github.com/weft-proxy/weft/nft/datatype"

// Quota matches until an amount of bytes has passed, or after it with Over. As an object's body
// without an amount, Unit is empty.
type Quota struct {
	Pos
	Over bool
	// Units are datatype.ByteUnits; UsedUnit is empty without a used amount.
	Bytes    uint64
	Unit     string
	Used     uint64
	UsedUnit string
}

func (p *parser) quota() Stmt {
	q := &Quota{Pos: p.begin()}
	q.parseAmounts(p)
	return q
}

func (q *Quota) parseAmounts(p *parser) {
	if !p.AcceptIdent("until") {
		q.Over = p.AcceptIdent("over")
	}
	amount := func() (uint64, string) {
		return p.ExpectNumber("a number of bytes, kbytes or mbytes", 64), p.OneOf(datatype.ByteUnits.Names()...)
	}
	q.Bytes, q.Unit = amount()
	if p.AcceptIdent("used") {
		q.Used, q.UsedUnit = amount()
	}
}

func (q *Quota) printStmt(p *printer) {
	p.str("quota ")
	q.printBody(p)
}

func (q *Quota) parseBody(p *parser) {
	*q = Quota{Pos: p.Tok.Pos}
	q.parseAmounts(p)
}

func (q *Quota) printBody(p *printer) {
	if q.Unit == "" {
		return
	}
	p.over(q.Over)
	p.num(q.Bytes)
	p.str(" ", q.Unit)
	if q.UsedUnit != "" {
		p.option("used", q.Used)
		p.str(" ", q.UsedUnit)
	}
}
