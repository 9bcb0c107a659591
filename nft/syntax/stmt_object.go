package syntax

import "github.com/weft-proxy/weft/nft"

// ObjectRef uses a named object: "counter name x", "ct helper set x".
type ObjectRef struct {
	Pos
	Kind nft.ObjectKind
	// a quoted Const, or a Map from keys to names
	Ref Expr
}

func (p *parser) objectRef(pos Pos, kind nft.ObjectKind) Stmt {
	return newObjectRef(pos, kind, p.value())
}

func (p *parser) objectName() Stmt {
	kind := nft.ObjectKind(p.Tok.Text)
	pos := p.begin()
	p.Advance()
	return p.objectRef(pos, kind)
}

// newObjectRef quotes the name, as nft does.
func newObjectRef(pos Pos, kind nft.ObjectKind, ref Expr) *ObjectRef {
	if c, ok := ref.(*Const); ok {
		ref = &Const{Pos: c.Pos, Text: c.Text, Quoted: true}
	}
	return &ObjectRef{Pos: pos, Kind: kind, Ref: ref}
}

func (p *parser) ctObject() Stmt {
	pos := p.begin()
	kind := nft.ObjectKind("ct " + p.OneOf("timeout", "expectation"))
	p.OneOf("set")
	return p.objectRef(pos, kind)
}

func (s *ObjectRef) printStmt(p *printer) {
	p.str(s.Kind.Statement(), " ")
	s.Ref.printExpr(p)
}
