package json

import "slices"

// selectorOf writes a selector. Presence is true if it is compared with a boolean.
func (x *writer) selectorOf(n node, presence bool) {
	x.presence = presence
	x.expr(n, nil)
	x.presence = false
}

// selector writes an expression that is read from a packet, its connection or its route. It
// returns false if name is not one.
func (x *writer) selector(name string, arg node) bool {
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
	case "ip option", "sctp chunk":
		x.phrase(name, arg, "name", "field?")
	case "meta", "socket":
		x.phrase(name, arg, "key")
	case "ct":
		x.phrase("ct", arg, "dir?", "key")
	case "rt":
		x.phrase("rt", arg, "family?", "key")
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

// generator writes an expression that is computed: a lookup, a number or a hash. It returns
// false if name is not one.
func (x *writer) generator(name string, arg node) bool {
	switch name {
	case "fib":
		x.words(arg.get("flags"), "fib ", " . ")
		x.phrase("", arg, "result")
		return true
	case "numgen":
		x.phrase(name, arg, "mode")
	case "jhash":
		x.str("jhash ")
		x.expr(arg.get("expr"), nil)
	case "symhash":
		x.str("symhash")
	default:
		return false
	}
	x.option32(arg, "mod")
	if name == "jhash" {
		x.option32(arg, "seed")
	}
	if arg.get("offset").number() != "0" {
		x.option32(arg, "offset")
	}
	return true
}
