package json

import (
	"strings"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/internal/scan"
)

// stmt writes a statement. nft prints a statement that has no JSON form as text.
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

// refusedStatements are the statements and objects of nft's JSON that are rejected, with
// the reason.
var refusedStatements = map[string]string{
	"xt":    "it is an extension of iptables, which nft can only show",
	"meter": "it belongs to the rule that has the statement",
}

// named writes the statement with the given name.
func (x *writer) named(name string, arg node) {
	defer x.leave()
	if !x.enter(arg) || x.verdict(name, arg) || x.reference(name, arg) {
		return
	}
	switch name {
	case "counter":
		x.str("counter")
		if arg.has("packets") {
			x.option(arg, "packets")
			x.option(arg, "bytes")
		}
	case "ct count":
		x.str("ct count ")
		x.over(arg)
		x.num32(arg.get("val"))
	case "dnat", "snat", "masquerade", "redirect":
		x.nat(name, arg)
	case "dup":
		x.dup(arg)
	case "flow":
		x.phrase("flow", arg, "op")
		x.str(" ")
		x.name(arg.get("flowtable"))
	case "fwd":
		x.phrase("fwd", arg, "family?")
		x.str(" to ")
		if arg.has("addr") {
			x.expr(arg.get("addr"), nil)
			x.str(" device ")
		}
		x.expr(arg.get("dev"), []form{formQuoted})
	case "limit":
		x.str("limit ")
		x.limit(arg)
	case "log":
		x.log(arg)
	case "mangle":
		x.expr(arg.get("key"), nil)
		x.str(" set ")
		x.expr(arg.get("value"), formsOf(arg.get("key")))
	case "match":
		x.match(arg)
	case "meter":
		x.meter(arg)
	case "notrack":
		x.str("notrack")
	case "queue":
		x.str("queue")
		x.words(arg.get("flags"), " flags ", ",")
		x.member(arg, " to ", "num", formPlain)
	case "quota":
		x.quota(arg)
	case "reject":
		x.reject(arg)
	case "reset":
		x.str("reset ")
		x.selectorOf(arg, true)
	case "set":
		x.dynamic(arg)
	case "synproxy":
		x.str("synproxy")
		x.option(arg, "mss")
		x.option(arg, "wscale")
		x.words(arg.get("flags"), " ", " ")
	case "tproxy":
		x.phrase("tproxy", arg, "family?")
		x.target(arg)
	case "vmap":
		x.composite(name, arg, nil)
	case "xt":
		x.fail(arg, "%s is not possible here: %s", name, refusedStatements[name])
	default:
		x.fail(arg, "unknown statement %q", name)
	}
}

// reject writes a reject statement, with or without a type.
func (x *writer) reject(arg node) {
	x.str("reject")
	if !arg.has("type") {
		return
	}
	x.phrase(" with", arg, "type")
	x.member(arg, " ", "expr", formPlain)
}

// reference writes a statement whose argument is the name of an object, or a map to names.
// It returns false for any other statement.
func (x *writer) reference(name string, arg node) bool {
	words := nft.ObjectKind(name).Statement()
	if words == "" || !arg.has("map") && arg.text() == "" {
		return false
	}
	x.str(words, " ")
	x.expr(arg, []form{formQuoted})
	return true
}

// match writes a comparison. Without an operator a list of flags on the right means any of
// them; after operations on bits it means all of them.
func (x *writer) match(n node) {
	left, right, op := n.get("left"), n.get("right"), n.get("op").text()
	name, _, _ := left.only()
	x.selectorOf(left, right.hasBool())
	switch op {
	case "in":
		op = ""
	case "==":
		// nft's text has no operator before a set. Elsewhere the operator matters only for
		// flags, because no operator means any of them.
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

// hasFlags reports whether a selector's values are flags.
func hasFlags(left node) bool {
	return left.has("ct") || left.get("payload").get("field").text() == "flags"
}

// dynamic writes a statement that changes a set.
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
	x.option(n, "size")
	x.str(" { ")
	x.elem(n.get("key"), nil, node{})
	x.str(" ")
	x.stmt(n.get("stmt"))
	x.str(" }")
}

// quota writes a quota.
func (x *writer) quota(n node) {
	x.str("quota ")
	x.over(n)
	x.num(n.get("val"))
	x.phrase("", n, "val_unit")
	if n.has("used") {
		x.option(n, "used")
		x.phrase("", n, "used_unit")
	}
}

// limit writes "rate over 10 kbytes/second burst 5 kbytes".
func (x *writer) limit(n node) {
	x.str("rate ")
	x.over(n)
	x.num(n.get("rate"))
	x.phrase("", n, "rate_unit?")
	x.str("/")
	x.word(n.get("per"))
	if !n.has("burst") || n.get("burst").number() == "0" {
		return
	}
	x.option(n, "burst")
	if n.has("burst_unit") {
		x.phrase("", n, "burst_unit")
	} else {
		x.str(" packets")
	}
}

// log writes a log statement.
func (x *writer) log(n node) {
	x.str("log")
	if n.has("prefix") {
		x.str(" prefix ")
		x.quoted(n.get("prefix"))
	}
	for _, key := range []string{"group", "snaplen", "queue-threshold"} {
		x.option(n, key)
	}
	if n.has("level") {
		x.phrase(" level", n, "level")
	}
	x.words(n.get("flags"), " flags ", " flags ")
}

// dup writes a dup statement. Without a device, a target that is a name is a device.
func (x *writer) dup(n node) {
	x.str("dup to ")
	f := formPlain
	if !n.has("dev") && scan.IsName(n.get("addr").text()) {
		f = formQuoted
	}
	x.expr(n.get("addr"), []form{f})
	x.member(n, " device ", "dev", formQuoted)
}

// nat writes dnat, snat, masquerade or redirect.
func (x *writer) nat(name string, n node) {
	x.str(name)
	if n.has("addr") {
		x.phrase("", n, "family?")
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
			// The prefix means this.
			continue
		}
		x.str(sep)
		sep = ","
		x.word(f)
	}
}

// target writes " to ADDR:PORT".
func (x *writer) target(n node) {
	x.str(" to ")
	if n.has("addr") {
		x.address(n.get("addr"), n.has("port"))
	}
	x.member(n, ":", "port", formPlain)
}

// address writes an address. An IPv6 address before a port is in brackets.
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
