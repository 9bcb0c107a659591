package json

import (
	"strings"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/internal/scan"
)

// nft prints a statement without a JSON form as text.
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

var refusedStatements = map[string]string{
	"xt":    "it is an extension of iptables, which nft can only show",
	"meter": "it belongs to the rule that has the statement",
}

func (x *writer) named(name string, arg node) {
	defer x.leave()
	if !x.enter(arg) || x.verdict(name, arg) || x.reference(name, arg) {
		return
	}
	if format, ok := statements[name]; ok {
		x.phrase(arg, format)
		return
	}
	switch name {
	case "dnat", "snat", "masquerade", "redirect":
		x.nat(name, arg)
	case "dup":
		x.dup(arg)
	case "mangle":
		x.expr(arg.get("key"), nil)
		x.str(" set ")
		x.expr(arg.get("value"), formsOf(arg.get("key")))
	case "match":
		x.match(arg)
	case "reset":
		x.str("reset ")
		x.selectorOf(arg, true)
	case "tproxy":
		x.phrase(arg, "tproxy[ <family>]")
		x.target(arg)
	case "vmap":
		x.composite(name, arg, nil)
	case "xt":
		x.fail(arg, "%s is not possible here: %s", name, refusedStatements[name])
	default:
		x.fail(arg, "unknown statement %q", name)
	}
}

// reference writes a statement with the name of an object, or a map to names. It returns false for
// another statement.
func (x *writer) reference(name string, arg node) bool {
	words := nft.ObjectKind(name).Statement()
	if words == "" || !arg.has("map") && arg.text() == "" {
		return false
	}
	x.str(words, " ")
	x.expr(arg, []form{formQuoted})
	return true
}

// match keeps "==" before flags, which without an operator mean any of these flags. After
// operations on bits they mean all.
func (x *writer) match(n node) {
	left, right, op := n.get("left"), n.get("right"), n.get("op").text()
	name, _, _ := left.only()
	x.selectorOf(left, right.hasBool())
	switch op {
	case "in":
		op = ""
	case "==":
		// nft's text has no operator before a set; elsewhere it matters only for flags
		member, _, _ := right.only()
		if member == "set" || strings.HasPrefix(right.text(), "@") || !isBinary(name) && !hasFlags(left) {
			op = ""
		}
	case "!=", "<", ">", "<=", ">=", "!":
	default:
		x.fail(n.get("op"), "unexpected %s: want an operator such as ==", n.get("op").describe())
	}
	x.str(" ")
	if op != "" {
		x.str(op, " ")
	}
	if isBinary(name) && right.isList() && len(right.list()) > 1 {
		x.binary("|", right)
		return
	}
	x.expr(right, formsOf(left))
}

func hasFlags(left node) bool {
	return left.has("ct") || left.get("payload").get("field").text() == "flags"
}

// dup takes a target that is a name as a device, if no other device is given.
func (x *writer) dup(n node) {
	x.str("dup to ")
	f := formPlain
	if !n.has("dev") && scan.IsName(n.get("addr").text()) {
		f = formQuoted
	}
	x.expr(n.get("addr"), []form{f})
	x.phrase(n, "[ device <dev:quoted>]")
}

func (x *writer) nat(name string, n node) {
	x.str(name)
	if n.has("addr") {
		x.phrase(n, "[ <family>]")
	}
	if n.get("type_flags").text() == "prefix" {
		x.str(" prefix")
	}
	if n.has("addr") || n.has("port") {
		x.target(n)
	}
	sep := " "
	for _, f := range n.get("flags").list() {
		if f.text() == "netmap" {
			continue
		}
		x.str(sep)
		sep = ","
		x.word(f)
	}
}

func (x *writer) target(n node) {
	x.str(" to ")
	if n.has("addr") {
		x.address(n.get("addr"), n.has("port"))
	}
	x.phrase(n, "[:<port:expr>]")
}

// An IPv6 address before a port is in brackets.
func (x *writer) address(n node, port bool) {
	name, arg, _ := n.only()
	switch ends := arg.list(); {
	case port && name == "range" && len(ends) == 2:
		x.address(ends[0], port)
		x.str("-")
		x.address(ends[1], port)
	case port && strings.Contains(n.text(), ":"):
		x.str("[")
		x.constant(n, nil)
		x.str("]")
	default:
		x.expr(n, nil)
	}
}
