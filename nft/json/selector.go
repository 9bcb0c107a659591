package json

// selector writes what is read from a packet, its connection or its route.
func (x *writer) selector(name string, arg node) bool {
	switch name {
	case "payload":
		x.payload(arg)
	case "exthdr":
		if !arg.has("field") {
			x.str("exthdr ")
		}
		x.field(arg)
	case "tcp option":
		x.str("tcp option ")
		switch {
		case x.presence && arg.has("base"):
			x.num(arg.get("base"))
			return true
		case arg.has("base"):
			x.raw("", arg)
			return true
		}
		x.field(arg)
	case "ip option", "sctp chunk":
		x.str(name + " ")
		x.field(arg)
	case "meta", "socket":
		x.str(name + " ")
		x.word(arg.get("key"))
	case "ct":
		x.str("ct ")
		x.optional(arg.get("dir"))
		x.word(arg.get("key"))
	case "rt":
		x.str("rt ")
		x.optional(arg.get("family"))
		x.word(arg.get("key"))
	case "ipsec":
		x.str("ipsec ")
		x.word(arg.get("dir"))
		x.option32(arg, "spnum", "spnum")
		x.str(" ")
		x.optional(arg.get("family"))
		x.word(arg.get("key"))
	case "osf":
		x.str("osf ")
		if arg.has("ttl") {
			x.str("ttl ")
			x.optional(arg.get("ttl"))
		}
		x.word(arg.get("key"))
	default:
		return false
	}
	return true
}

// optional writes a word and a blank where it is there.
func (x *writer) optional(n node) {
	if n.v != nil {
		x.word(n)
		x.str(" ")
	}
}

// payload writes a header field, or raw payload.
func (x *writer) payload(n node) {
	if n.has("base") {
		x.raw(n.get("base").text(), n)
		return
	}
	x.word(n.get("protocol"))
	x.str(" ")
	x.word(n.get("field"))
}

// raw writes "@base,offset,length". A TCP option has a number for its base.
func (x *writer) raw(base string, n node) {
	x.str("@")
	switch base {
	case "ll", "nh", "th", "ih":
		x.str(base)
	case "":
		x.num(n.get("base"))
	default:
		x.fail(n.get("base"), "unexpected %q: want ll, nh, th or ih", base)
	}
	x.str(",")
	x.num(n.get("offset"))
	x.str(",")
	x.num(n.get("len"))
}

// field writes the name of an option or extension header, and its field.
func (x *writer) field(n node) {
	x.word(n.get("name"))
	if n.has("field") {
		x.str(" ")
		x.word(n.get("field"))
	}
}

// generator writes what is computed: lookups, numbers and hashes.
func (x *writer) generator(name string, arg node) bool {
	switch name {
	case "fib":
		x.str("fib ")
		for i, f := range arg.get("flags").list() {
			if i > 0 {
				x.str(" . ")
			}
			x.word(f)
		}
		x.str(" ")
		x.word(arg.get("result"))
	case "numgen":
		x.str("numgen ")
		x.word(arg.get("mode"))
		x.option32(arg, "mod", "mod")
		x.offset(arg)
	case "jhash":
		x.str("jhash ")
		x.expr(arg.get("expr"), nil)
		x.option32(arg, "mod", "mod")
		x.option32(arg, "seed", "seed")
		x.offset(arg)
	case "symhash":
		x.str("symhash")
		x.option32(arg, "mod", "mod")
		x.offset(arg)
	default:
		return false
	}
	return true
}

// offset writes the offset of a generator, if it is not 0.
func (x *writer) offset(n node) {
	if n.get("offset").number() != "0" {
		x.option32(n, "offset", "offset")
	}
}
