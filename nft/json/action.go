package json

import (
	"strings"

	"github.com/weft-proxy/weft/nft/internal/scan"
)

// action writes the statements that do something with a packet.
func (x *writer) action(name string, arg node) bool {
	switch name {
	case "dnat", "snat", "masquerade", "redirect":
		x.nat(name, arg)
	case "log":
		x.log(arg)
	case "reject":
		x.reject(arg)
	case "tproxy":
		x.str("tproxy ")
		x.optional(arg.get("family"))
		x.target(arg)
	case "dup":
		x.str("dup to ")
		x.expr(arg.get("addr"), []form{deviceForm(arg, "dev")})
		if arg.has("dev") {
			x.str(" device ")
			x.expr(arg.get("dev"), []form{formQuoted})
		}
	case "fwd":
		x.str("fwd ")
		x.optional(arg.get("family"))
		x.str("to ")
		if arg.has("addr") {
			x.expr(arg.get("addr"), nil)
			x.str(" device ")
		}
		x.expr(arg.get("dev"), []form{formQuoted})
	case "queue":
		x.str("queue")
		x.words(arg.get("flags"), " flags ", ",")
		if arg.has("num") {
			x.str(" to ")
			x.expr(arg.get("num"), nil)
		}
	default:
		return false
	}
	return true
}

// deviceForm is the kind of a target that is a device where the other member is
// missing and it is no address.
func deviceForm(n node, other string) form {
	if s := n.get("addr").text(); !n.has(other) && scan.IsName(s) {
		return formQuoted
	}
	return formPlain
}

// nat writes dnat, snat, masquerade or redirect.
func (x *writer) nat(name string, n node) {
	x.str(name)
	prefix := n.get("type_flags").text() == "prefix"
	if n.has("addr") && n.has("family") {
		x.str(" ")
		x.word(n.get("family"))
	}
	if prefix {
		x.str(" prefix")
	}
	if n.has("addr") || n.has("port") {
		x.str(" ")
		x.target(n)
	}
	first := true
	for _, f := range n.get("flags").list() {
		if f.text() == "netmap" {
			// That is what prefix means.
			continue
		}
		if first {
			x.str(" ")
		} else {
			x.str(",")
		}
		first = false
		x.word(f)
	}
}

// target writes "to ADDR:PORT".
func (x *writer) target(n node) {
	x.str("to ")
	if n.has("addr") {
		x.address(n.get("addr"), n.has("port"))
	}
	if n.has("port") {
		x.str(":")
		x.expr(n.get("port"), nil)
	}
}

// address writes an address, in brackets where a port follows and it has colons.
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

// reject writes a reject statement.
func (x *writer) reject(n node) {
	x.str("reject")
	if !n.has("type") {
		return
	}
	x.str(" with ")
	x.word(n.get("type"))
	if n.has("expr") {
		x.str(" ")
		x.expr(n.get("expr"), nil)
	}
}

// log writes a log statement.
func (x *writer) log(n node) {
	x.str("log")
	if n.has("prefix") {
		x.str(" prefix ")
		x.quoted(n.get("prefix"), n.get("prefix").text())
	}
	for _, key := range []string{"group", "snaplen", "queue-threshold"} {
		x.option(n, key, key)
	}
	if n.has("level") {
		x.str(" level ")
		x.word(n.get("level"))
	}
	x.words(n.get("flags"), " flags ", " flags ")
}
