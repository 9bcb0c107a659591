package json

import (
	"slices"
)

// forms are of the selector compared with the expression, if any.
func (x *writer) expr(n node, forms []form) {
	defer x.leave()
	if !x.enter(n) {
		return
	}
	if n.isList() {
		for i, item := range n.list() {
			x.separator(i, ",")
			x.expr(item, forms)
		}
		return
	}
	if n.object() == nil {
		x.constant(n, forms)
		return
	}
	name, arg, ok := n.only()
	switch {
	case !ok:
		x.fail(n, "unexpected object with %d members: want one that names an expression", len(n.object()))
	case x.composite(name, arg, forms), x.verdict(name, arg), x.selector(name, arg):
	default:
		x.fail(n, "unknown expression %q", name)
	}
}

// composite returns false for expressions without operands.
func (x *writer) composite(name string, arg node, forms []form) bool {
	switch name {
	case "concat":
		for i, part := range arg.list() {
			x.separator(i, " . ")
			var partForms []form
			if i < len(forms) {
				partForms = forms[i : i+1]
			}
			x.expr(part, partForms)
		}
	case "set":
		x.set(arg, forms)
	case "range":
		ends := arg.list()
		if len(ends) != 2 {
			x.fail(arg, "unexpected %d ends of a range: want 2", len(ends))
			return true
		}
		x.expr(ends[0], forms)
		// "-" is a character of names
		x.str(" - ")
		x.expr(ends[1], forms)
	case "prefix":
		x.expr(arg.get("addr"), forms)
		x.phrase(arg, "/<len:number>")
	case "&", "|", "^", "<<", ">>":
		x.binary(name, arg)
	case "map", "vmap":
		members := arg.get("data").get("set").list()
		x.selectorOf(arg.get("key"), slices.ContainsFunc(members, func(m node) bool { return len(m.list()) == 2 && m.list()[0].hasBool() }))
		x.str(" ", name, " ")
		x.expr(arg.get("data"), formsOf(arg.get("key")))
	case "elem":
		x.elem(arg, forms, node{})
	default:
		return false
	}
	return true
}

func isBinary(name string) bool { return slices.Contains([]string{"&", "|", "^", "<<", ">>"}, name) }

// A list of flags is their union.
func (x *writer) binary(op string, n node) {
	operands := n.list()
	if len(operands) < 2 {
		x.fail(n, "unexpected %d operands of %s: want 2", len(operands), op)
		return
	}
	for i, o := range operands {
		x.separator(i, " "+op+" ")
		x.operand(o)
	}
}

func (x *writer) operand(n node) {
	name, _, _ := n.only()
	switch {
	case n.isList() && len(n.list()) > 1:
		x.str("(")
		x.binary("|", n)
		x.str(")")
	case isBinary(name):
		x.str("(")
		x.expr(n, nil)
		x.str(")")
	default:
		x.expr(n, nil)
	}
}

func (x *writer) set(n node, forms []form) {
	x.str("{ ")
	for i, e := range n.list() {
		x.separator(i, ", ")
		key, value := e.pair()
		x.elem(key, forms, value)
	}
	x.str(" }")
}

// value is a map's data.
func (x *writer) elem(n node, forms []form, value node) {
	defer x.leave()
	if !x.enter(n) {
		return
	}
	key, options := n.element()
	if key.text() == "*" {
		x.str("*")
	} else {
		x.expr(key, forms)
	}
	for _, name := range statefulNames {
		if options.contains(name) {
			x.str(" ")
			x.named(name, options.get(name))
		}
	}
	x.phrase(options, "[ timeout <timeout:number>s][ expires <expires:number>s][ comment <comment:string>]")
	if value.path != nil {
		x.str(" : ")
		x.expr(value, nil)
	}
}

var statefulNames = []string{"counter", "limit", "quota", "ct count"}

func (x *writer) verdict(name string, arg node) bool {
	switch name {
	case "accept", "drop", "continue", "return":
		x.str(name)
	case "jump", "goto":
		x.phrase(arg, name+" <target:name>")
	default:
		return false
	}
	return true
}
