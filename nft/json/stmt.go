package json

import "strings"

// stmt writes a statement. nft writes those that it has no JSON for as text.
func (x *writer) stmt(n node) {
	if text := n.text(); text != "" {
		x.str(text)
		return
	}
	name, arg, ok := n.only()
	if !ok {
		x.fail(n, "unexpected %s: want an object that names a statement", n.describe())
		return
	}
	x.named(name, arg)
}

// named writes the statement of a name.
func (x *writer) named(name string, arg node) {
	defer x.leave()
	if !x.enter(arg) || x.verdict(name, arg) {
		return
	}
	switch name {
	case "match":
		x.match(arg)
	case "mangle":
		x.expr(arg.get("key"), nil)
		x.str(" set ")
		x.expr(arg.get("value"), formsOf(arg.get("key")))
	case "vmap":
		x.composite(name, arg, nil)
	case "set":
		x.dynamic(arg)
	case "flow":
		x.str("flow ")
		x.word(arg.get("op"))
		x.str(" ")
		x.name(arg.get("flowtable"))
	case "notrack":
		x.str(name)
	case "reset":
		x.str("reset ")
		x.asked(arg, true)
	case "meter":
		x.meter(arg)
	case "xt":
		x.fail(arg, "%s is not possible here: %s", name, refusedStatements[name])
	default:
		if !x.stateful(name, arg) && !x.action(name, arg) {
			x.fail(arg, "unknown statement %q", name)
		}
	}
}

// refusedStatements are statements of nft's JSON that weft does not take, and
// why.
var refusedStatements = map[string]string{
	"xt":    "it is an extension of iptables, which nft only shows",
	"meter": "it belongs to the rule that has the statement",
}

// match writes a comparison. Of a list of flags on the right, each is one of them
// where there is no operator, and all of them behind operations on bits.
func (x *writer) match(n node) {
	left, right, op := n.get("left"), n.get("right"), n.get("op").text()
	name, _, _ := left.only()
	bits := name == "&" || name == "|" || name == "^" || name == "<<" || name == ">>"
	x.asked(left, right.hasBool())
	switch op {
	case "in":
		op = ""
	case "==":
		// A set on the right has no operator. Elsewhere it matters beside flags,
		// where nothing would mean any of them.
		member, _, _ := right.only()
		if member == "set" || strings.HasPrefix(right.text(), "@") || !bits && !hasFlags(left) {
			op = ""
		}
	case "!=", "<", ">", "<=", ">=", "!":
	default:
		x.fail(n.get("op"), "unexpected %s: want an operator such as ==", n.get("op").describe())
	}
	x.str(" ")
	if op != "" {
		x.str(op + " ")
	}
	if bits && right.isList() && len(right.list()) > 1 {
		x.binary("|", right)
		return
	}
	x.expr(right, formsOf(left))
}

// asked writes a selector; presence is true where it is asked for its presence.
func (x *writer) asked(n node, presence bool) {
	x.presence = presence
	x.expr(n, nil)
	x.presence = false
}

// hasFlags reports whether a selector's values are flags.
func hasFlags(left node) bool {
	return left.object()["ct"] != nil || left.get("payload").get("field").text() == "flags"
}

// dynamic writes what packets put into a set.
func (x *writer) dynamic(n node) {
	x.word(n.get("op"))
	x.str(" ")
	x.name(n.get("set"))
	x.str(" { ")
	x.elem(n.get("elem"), nil, node{})
	for _, s := range n.get("stmt").list() {
		x.str(" ")
		x.stmt(s)
	}
	x.str(" }")
}

// meter writes a meter.
func (x *writer) meter(n node) {
	x.str("meter ")
	x.name(n.get("name"))
	if n.has("size") {
		x.option(n, "size", "size")
	}
	x.str(" { ")
	x.elem(n.get("key"), nil, node{})
	x.str(" ")
	x.stmt(n.get("stmt"))
	x.str(" }")
}

// stateful writes the statements that count. With a name or a map for their
// argument they refer to objects.
func (x *writer) stateful(name string, arg node) bool {
	if _, isMap, _ := arg.only(); arg.text() != "" || arg.object()["map"] != nil && isMap.path != nil {
		return x.reference(name, arg)
	}
	switch name {
	case "counter":
		x.str("counter")
		if arg.has("packets") {
			x.option(arg, "packets", "packets")
			x.option(arg, "bytes", "bytes")
		}
	case "limit":
		x.str("limit ")
		x.limit(arg)
	case "quota":
		x.str("quota ")
		x.over(arg)
		x.num(arg.get("val"))
		x.str(" ")
		x.word(arg.get("val_unit"))
		if arg.has("used") {
			x.option(arg, "used", "used")
			x.str(" ")
			x.word(arg.get("used_unit"))
		}
	case "ct count":
		x.str("ct count ")
		x.over(arg)
		x.num32(arg.get("val"))
	case "synproxy":
		x.str("synproxy")
		x.option(arg, "mss", "mss")
		x.option(arg, "wscale", "wscale")
		x.words(arg.get("flags"), " ", " ")
	default:
		return false
	}
	return true
}

// reference writes a statement that names an object.
func (x *writer) reference(name string, arg node) bool {
	switch name {
	case "counter", "quota", "limit", "synproxy":
		x.str(name + " name ")
	case "ct helper", "ct timeout", "ct expectation":
		x.str(name + " set ")
	case "secmark":
		x.str("meta secmark set ")
	default:
		return false
	}
	x.expr(arg, []form{formQuoted})
	return true
}

// over writes "over " where the member inv is true.
func (x *writer) over(n node) {
	if inv, _ := n.get("inv").v.(bool); inv {
		x.str("over ")
	}
}

// limit writes "rate over 10 kbytes/second burst 5 kbytes".
func (x *writer) limit(n node) {
	x.str("rate ")
	x.over(n)
	x.num(n.get("rate"))
	if n.has("rate_unit") {
		x.str(" ")
		x.word(n.get("rate_unit"))
	}
	x.str("/")
	x.word(n.get("per"))
	if !n.has("burst") || n.get("burst").number() == "0" {
		return
	}
	x.option(n, "burst", "burst")
	x.str(" ")
	if n.has("burst_unit") {
		x.word(n.get("burst_unit"))
	} else {
		x.str("packets")
	}
}

// words writes words, which may be one or a list, with before in front of all and
// between them sep.
func (x *writer) words(n node, before, sep string) {
	for i, w := range n.list() {
		if i == 0 {
			x.str(before)
		} else {
			x.str(sep)
		}
		x.word(w)
	}
}
