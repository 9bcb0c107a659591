package syntax

// TypeOf is a parsed typeof declaration of a set's key and a map's data.
type TypeOf struct {
	Key []Expr
	// Map: ": DATA". Verdict: the data is "verdict", and Data is nil.
	Map     bool
	Verdict bool
	// ": interval DATA"
	Interval bool
	Data     []Expr
}

// ParseTypeOf parses a typeof declaration, such as "ip daddr : verdict". The error is an *Error.
func ParseTypeOf(text string) (*TypeOf, error) {
	p := newParser(text)
	t := &TypeOf{Key: p.typeOfList()}
	if p.AcceptPunct(":") {
		t.Map = true
		if p.AcceptIdent("verdict") {
			t.Verdict = true
		} else {
			t.Interval = p.AcceptIdent("interval")
			t.Data = p.typeOfList()
		}
	}
	return result(p, t, "in a typeof declaration")
}

func (p *parser) typeOfList() []Expr {
	x := p.selector()
	if c, ok := x.(*Concat); ok {
		return c.Parts
	}
	return []Expr{x}
}
