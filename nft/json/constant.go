package json

import (
	"strings"

	"github.com/weft-proxy/weft/nft/internal/scan"
)

// notation of constants compared with a selector
type form uint8

const (
	formPlain form = iota
	// nft quotes them
	formQuoted
	formPresence
	// seconds in JSON
	formSeconds
)

const quotedKeys = " iif oif iifname oifname ibrname obrname sdif sdifname iifkind oifkind ibriport obriport bri_iifname bri_oifname hour day time "

func formsOf(n node) []form {
	name, arg, _ := n.only()
	if name != "concat" {
		return []form{formOf(name, arg)}
	}
	var out []form
	for _, part := range arg.list() {
		name, arg, _ := part.only()
		out = append(out, formOf(name, arg))
	}
	return out
}

func formOf(name string, arg node) form {
	switch name {
	case "meta":
		if key := arg.get("key").text(); key != "" && strings.Contains(quotedKeys, " "+key+" ") {
			return formQuoted
		}
	case "osf":
		return formQuoted
	case "ct":
		switch arg.get("key").text() {
		case "helper":
			return formQuoted
		case "expiration":
			return formSeconds
		}
	case "fib":
		if arg.get("result").text() == "oifname" {
			return formQuoted
		}
		return formPresence
	case "exthdr", "tcp option", "ip option", "sctp chunk":
		if !arg.has("field") {
			return formPresence
		}
	}
	return formPlain
}

func typeForms(typ string) []form {
	key, _, _ := strings.Cut(typ, " : ")
	parts := strings.Split(key, " . ")
	out := make([]form, len(parts))
	for i, p := range parts {
		switch p {
		case "ifname", "iface_index", "string", "hour", "day", "time":
			out[i] = formQuoted
		case "relative_time":
			out[i] = formSeconds
		}
	}
	return out
}

func (x *writer) constant(n node, forms []form) {
	f := formPlain
	if len(forms) == 1 {
		f = forms[0]
	}
	switch v := n.v.(type) {
	case bool:
		words := [2]string{"0", "1"}
		if f == formPresence {
			words = [2]string{"missing", "exists"}
		}
		if v {
			x.str(words[1])
		} else {
			x.str(words[0])
		}
	case string:
		if ref, ok := strings.CutPrefix(v, "@"); ok && scan.IsName(ref) || f != formQuoted && scan.IsWord(v) {
			x.str(v)
		} else {
			x.quoted(n)
		}
	default:
		x.num(n)
		if f == formSeconds {
			x.str("s")
		}
	}
}
