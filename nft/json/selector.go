package json

import "slices"

// selectorOf writes a selector. Presence is true if it is compared with a boolean.
func (x *writer) selectorOf(n node, presence bool) {
	x.presence = presence
	x.expr(n, nil)
	x.presence = false
}

// phrases are the selectors that are a word and the members of an object.
var phrases = map[string][]string{
	"ip option": {"name", "field?"}, "sctp chunk": {"name", "field?"},
	"meta": {"key"}, "socket": {"key"}, "ct": {"dir?", "key"}, "rt": {"family?", "key"},
}

// selector writes an expression that is read from a packet or computed. It
// returns false if name is not one.
func (x *writer) selector(name string, arg node) bool {
	if members, ok := phrases[name]; ok {
		x.phrase(name, arg, members...)
		return true
	}
	switch name {
	case "payload":
		if arg.has("base") {
			x.raw(arg.get("base").text(), arg)
			return true
		}
		x.word(arg.get("protocol"))
		x.phrase("", arg, "field")
	case "exthdr":
		if !arg.has("field") {
			x.str("exthdr ")
		}
		x.word(arg.get("name"))
		x.phrase("", arg, "field?")
	case "tcp option":
		switch {
		case x.presence && arg.has("base"):
			x.str("tcp option ")
			x.num(arg.get("base"))
		case arg.has("base"):
			x.str("tcp option ")
			x.raw("", arg)
		default:
			x.phrase(name, arg, "name", "field?")
		}
	case "fib":
		x.words(arg.get("flags"), "fib ", " . ")
		x.phrase("", arg, "result")
	case "numgen":
		x.phrase(name, arg, "mode")
		x.hash(name, arg)
	case "jhash":
		x.str("jhash ")
		x.expr(arg.get("expr"), nil)
		x.hash(name, arg)
	case "symhash":
		x.str(name)
		x.hash(name, arg)
	case "ipsec":
		x.phrase("ipsec", arg, "dir")
		x.option32(arg, "spnum")
		x.phrase("", arg, "family?", "key")
	case "osf":
		x.str("osf")
		if arg.has("ttl") {
			x.phrase(" ttl", arg, "ttl")
		}
		x.phrase("", arg, "key")
	default:
		return false
	}
	return true
}

// raw writes "@base,offset,length". The base of a TCP option is a number.
func (x *writer) raw(base string, n node) {
	x.str("@", base)
	if base == "" {
		x.num(n.get("base"))
	} else if !slices.Contains([]string{"ll", "nh", "th", "ih"}, base) {
		x.fail(n.get("base"), "unexpected %q: want ll, nh, th or ih", base)
	}
	x.str(",")
	x.num(n.get("offset"))
	x.str(",")
	x.num(n.get("len"))
}

// hash writes a generator of numbers or a hash, whose first words were written.
func (x *writer) hash(name string, arg node) {
	x.option32(arg, "mod")
	if name == "jhash" {
		x.option32(arg, "seed")
	}
	if arg.get("offset").number() != "0" {
		x.option32(arg, "offset")
	}
}
