package json

// selectorOf writes n; presence means a comparison with a boolean.
func (x *writer) selectorOf(n node, presence bool) {
	x.presence = presence
	x.expr(n, nil)
	x.presence = false
}

// selector returns false if name is not a selector.
func (x *writer) selector(name string, arg node) bool {
	format, ok := selectors[name]
	switch raw := arg.has("base"); {
	case name == "payload" && raw:
		format = "@<base>,<offset:number>,<len:number>"
	case name == "tcp option" && raw && x.presence:
		format = "tcp option <base:number>"
	case name == "tcp option" && raw:
		format = "tcp option @<base:number>,<offset:number>,<len:number>"
	case name == "exthdr" && !arg.has("field"):
		format = "exthdr <name>"
	}
	x.phrase(arg, format)
	return ok
}
