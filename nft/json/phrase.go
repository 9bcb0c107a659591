package json

import (
	"strings"

	"github.com/weft-proxy/weft/nft"
)

// packet fields and computed values
var selectors = map[string]string{
	"meta":       "meta <key>",
	"ct":         "ct[ <dir>] <key>",
	"rt":         "rt[ <family>] <key>",
	"socket":     "socket <key>",
	"osf":        "osf[ ttl <ttl>] <key>",
	"fib":        "fib <flags:list . > <result>",
	"ipsec":      "ipsec <dir>[ spnum <spnum:number32>][ <family>] <key>",
	"payload":    "<protocol> <field>",
	"exthdr":     "<name>[ <field>]",
	"ip option":  "ip option <name>[ <field>]",
	"tcp option": "tcp option <name>[ <field>]",
	"sctp chunk": "sctp chunk <name>[ <field>]",
	"numgen":     "numgen <mode>[ mod <mod:number32>][ offset <offset:number32!>]",
	"jhash":      "jhash <expr:expr>[ mod <mod:number32>][ seed <seed:number32>][ offset <offset:number32!>]",
	"symhash":    "symhash[ mod <mod:number32>][ offset <offset:number32!>]",
}

const rate = "rate <inv:over><rate:number>[ <rate_unit>]/<per>[ burst <burst:number!> <burst_unit:unit>]"

var statements = map[string]string{
	"counter":  "counter[ packets <packets:number>][ bytes <bytes:number>]",
	"ct count": "ct count <inv:over><val:number32>",
	"flow":     "flow <op> <flowtable:name>",
	"fwd":      "fwd[ <family>] to [<addr:expr> device ]<dev:quoted>",
	"limit":    "limit " + rate,
	"log":      "log[ prefix <prefix:string>][ group <group:number>][ snaplen <snaplen:number>][ queue-threshold <queue-threshold:number>][ level <level>][ flags <flags:list flags >]",
	"meter":    "meter <name:name>[ size <size:number>] { <key:elem> <stmt:stmt> }",
	"notrack":  "notrack",
	"queue":    "queue[ flags <flags:list,>][ to <num:expr>]",
	"quota":    "quota <inv:over><val:number> <val_unit>[ used <used:number> <used_unit>]",
	"reject":   "reject[ with <type>][ <expr:expr>]",
	"set":      "<op> <set:name> { <elem:elem>[ <stmt:stmt>] }",
	"synproxy": "synproxy[ mss <mss:number>][ wscale <wscale:number>][ <flags:list >]",
}

// without the times of a ct timeout
var objects = map[nft.ObjectKind]string{
	nft.ObjectCounter:   "[packets <packets:number> ][bytes <bytes:number>]",
	nft.ObjectQuota:     "<inv:over><bytes:number> bytes[ used <used:number!> bytes]",
	nft.ObjectLimit:     rate,
	nft.ObjectSecMark:   "<context:string>",
	nft.ObjectSynProxy:  "mss <mss:number>; wscale <wscale:number>[; <flags:list >]",
	nft.ObjectCTHelper:  "type <type:string> protocol <protocol>[; l3proto <l3proto>]",
	nft.ObjectCTTimeout: "protocol <protocol>[; l3proto <l3proto>]",
	// The timeout of an expectation is the only time in milliseconds in nft's JSON
	nft.ObjectCTExpectation: "protocol <protocol>; dport <dport:number>; timeout <timeout:number>ms; size <size:number>[; l3proto <l3proto>]",
}

// phrase writes format: <KEY> is the member KEY of n, a word, and <KEY:KIND> a member of another
// kind. A part in brackets is left out if its first member is missing or an empty list or, with a
// "!" after its kind, 0.
func (x *writer) phrase(n node, format string) {
	for format != "" {
		text, rest, bracket := format, "", strings.IndexAny(format, "<[")
		if bracket >= 0 {
			text, rest = format[:bracket], format[bracket+1:]
		}
		x.str(text)
		var part string
		switch {
		case bracket < 0:
		case format[bracket] == '<':
			part, rest, _ = strings.Cut(rest, ">")
			key, kind, _ := strings.Cut(part, ":")
			x.member(n.get(key), strings.TrimSuffix(kind, "!"))
		default:
			part, rest, _ = strings.Cut(rest, "]")
			_, first, _ := strings.Cut(part, "<")
			first, _, _ = strings.Cut(first, ">")
			key, kind, _ := strings.Cut(first, ":")
			if v := n.get(key); len(v.list()) > 0 && !(strings.HasSuffix(kind, "!") && v.number() == "0") {
				x.phrase(n, part)
			}
		}
		format = rest
	}
}

func (x *writer) member(v node, kind string) {
	separator, isList := strings.CutPrefix(kind, "list")
	switch {
	case isList:
		for i, w := range v.list() {
			x.separator(i, separator)
			x.word(w)
		}
	case kind == "number":
		x.num(v)
	case kind == "number32":
		x.digits(v, v.number32())
	case kind == "string":
		x.quoted(v)
	case kind == "name":
		x.name(v)
	case kind == "expr":
		x.expr(v, nil)
	case kind == "quoted": // with quoted constants
		x.expr(v, []form{formQuoted})
	case kind == "elem":
		x.elem(v, nil, node{})
	case kind == "stmt":
		for i, s := range v.list() {
			x.separator(i, " ")
			x.stmt(s)
		}
	case kind == "over":
		if v.v == true {
			x.str("over ")
		}
	case kind == "unit" && v.v == nil:
		x.str("packets")
	default:
		x.word(v)
	}
}
