package json

import "slices"

// expr writes an expression. Kinds are those of the selector that it is compared
// with, if any.
func (x *writer) expr(n node, forms []form) {
	defer x.leave()
	if !x.enter(n) {
		return
	}
	if n.isList() {
		x.listOf(n, forms)
		return
	}
	if n.object() == nil {
		x.constant(n, forms)
		return
	}
	name, arg, ok := n.only()
	if !ok {
		x.fail(n, "unexpected object with %d members: want one that names an expression", len(n.object()))
		return
	}
	if x.composite(name, arg, forms) || x.verdict(name, arg) || x.selector(name, arg) || x.generator(name, arg) {
		return
	}
	x.fail(n, "unknown expression %q", name)
}

// listOf writes a list of flags.
func (x *writer) listOf(n node, forms []form) {
	for i, item := range n.list() {
		if i > 0 {
			x.str(",")
		}
		x.expr(item, forms)
	}
}

// composite writes what is made of other expressions.
func (x *writer) composite(name string, arg node, forms []form) bool {
	switch name {
	case "concat":
		x.concat(arg, forms)
	case "set":
		x.set(arg, forms)
	case "range":
		ends := arg.list()
		if len(ends) != 2 {
			x.fail(arg, "unexpected %d ends of a range: want 2", len(ends))
			return true
		}
		x.expr(ends[0], forms)
		// Blanks, since "-" is a letter of names.
		x.str(" - ")
		x.expr(ends[1], forms)
	case "prefix":
		x.expr(arg.get("addr"), forms)
		x.str("/")
		x.num(arg.get("len"))
	case "&", "|", "^", "<<", ">>":
		x.binary(name, arg)
	case "map", "vmap":
		members := arg.get("data").get("set").list()
		x.asked(arg.get("key"), slices.ContainsFunc(members, func(m node) bool { return len(m.list()) == 2 && m.list()[0].hasBool() }))
		x.str(" " + name + " ")
		x.expr(arg.get("data"), formsOf(arg.get("key")))
	case "elem":
		x.elem(arg, forms, node{})
	default:
		return false
	}
	return true
}

func (x *writer) concat(n node, forms []form) {
	for i, part := range n.list() {
		if i > 0 {
			x.str(" . ")
		}
		var kind []form
		if i < len(forms) {
			kind = forms[i : i+1]
		}
		x.expr(part, kind)
	}
}

// binary writes an operation on bits, its operands in parentheses where they are
// operations. A list of flags is their union.
func (x *writer) binary(op string, n node) {
	operands := n.list()
	if len(operands) < 2 {
		x.fail(n, "unexpected %d operands of %s: want 2", len(operands), op)
		return
	}
	for i, o := range operands {
		if i > 0 {
			x.str(" " + op + " ")
		}
		x.operand(o)
	}
}

// operand writes an operand of an operation on bits.
func (x *writer) operand(n node) {
	name, _, _ := n.only()
	switch {
	case n.isList() && len(n.list()) > 1:
		x.str("(")
		x.binary("|", n)
		x.str(")")
	case name == "&" || name == "|" || name == "^" || name == "<<" || name == ">>":
		x.str("(")
		x.expr(n, nil)
		x.str(")")
	default:
		x.expr(n, nil)
	}
}

// set writes an anonymous set or map.
func (x *writer) set(n node, forms []form) {
	x.str("{ ")
	for i, e := range n.list() {
		if i > 0 {
			x.str(", ")
		}
		if pair := e.list(); e.isList() && len(pair) == 2 {
			x.elem(pair[0], forms, pair[1])
			continue
		}
		x.elem(e, forms, node{})
	}
	x.str(" }")
}

// elem writes an element of a set or map with its options. Value is a map's data.
func (x *writer) elem(n node, forms []form, value node) {
	defer x.leave()
	if !x.enter(n) {
		return
	}
	if name, arg, ok := n.only(); ok && name == "elem" {
		n = arg
	}
	key := n
	if n.has("val") {
		key = n.get("val")
	}
	if key.text() == "*" {
		x.str("*")
	} else {
		x.expr(key, forms)
	}
	if n.has("val") {
		x.elemOptions(n)
	}
	if value.path != nil {
		x.str(" : ")
		x.expr(value, nil)
	}
}

// elemOptions writes what an element has beside its key.
func (x *writer) elemOptions(n node) {
	for _, key := range statefulNames {
		if _, ok := n.object()[key]; ok {
			x.str(" ")
			x.named(key, n.get(key))
		}
	}
	for _, key := range []string{"timeout", "expires"} {
		if n.has(key) {
			x.option(n, key, key)
			x.str("s")
		}
	}
	if n.has("comment") {
		x.str(" comment ")
		x.quoted(n.get("comment"), n.get("comment").text())
	}
}

// statefulNames are the statements that elements can have.
var statefulNames = []string{"counter", "limit", "quota", "ct count"}

// verdict writes a verdict.
func (x *writer) verdict(name string, arg node) bool {
	switch name {
	case "accept", "drop", "continue", "return":
		x.str(name)
	case "jump", "goto":
		x.str(name + " ")
		x.name(arg.get("target"))
	default:
		return false
	}
	return true
}
