package syntax

// PrintTypeOf returns a typeof declaration in canonical form, without the word "typeof".
func PrintTypeOf(t *TypeOf) string {
	p := &printer{}
	p.list(t.Key, " . ")
	switch {
	case t.Verdict:
		p.str(" : verdict")
	case t.Map && t.Interval:
		p.str(" : interval ")
	case t.Map:
		p.str(" : ")
	}
	p.list(t.Data, " . ")
	return p.b.String()
}
