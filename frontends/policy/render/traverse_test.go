package render

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/weft-proxy/weft/frontends/policy/judge"
	"github.com/weft-proxy/weft/frontends/policy/model"
)

// traversal is the way of the first packet of a flow through a table. It reads the text of
// rules, as far as this package writes it.
type traversal struct {
	*content
	flow judge.Flow
}

// traverse returns the verdict on the first packet of a flow, which goes to the node itself
// or through it.
func (r ruleset) traverse(f judge.Flow, toNode bool) (allowed bool) {
	family, hook := "ip", chainForward
	if f.Source.Is6() {
		family = "ip6"
	}
	if toNode {
		hook = chainInput
	}
	t := &traversal{r[family], f}
	return t.chains[hook] == nil || t.chain(hook) != "drop"
}

// chain returns "accept", "drop", or "" at the end of the chain.
func (t *traversal) chain(name string) string {
	c := t.chains[name]
	if c == nil {
		panic("no chain " + name)
	}
	for _, r := range c.GetRules() {
		verdict := t.rule(r.GetText())
		to, chain, _ := strings.Cut(verdict, " ")
		switch to {
		case "accept", "drop":
			return to
		case "return":
			return ""
		case "goto":
			return t.chain(chain)
		case "jump":
			if v := t.chain(chain); v != "" {
				return v
			}
		}
	}
	return ""
}

// rule returns the verdict of a rule, "" if it does not match or has none.
func (t *traversal) rule(text string) string {
	for text != "" && !verdict(text) {
		var ok bool
		if text, ok = t.match(text); !ok {
			return ""
		}
	}
	return text
}

func verdict(text string) bool {
	to, _, _ := strings.Cut(text, " ")
	return to == "accept" || to == "drop" || to == "return" || to == "goto" || to == "jump"
}

// match consumes the first match or statement of a rule. What a map leads to is the rest.
func (t *traversal) match(text string) (rest string, ok bool) {
	for _, never := range []string{"ct state ", "ct direction ", "iif lo ", "ip6 hoplimit ", "limit rate "} {
		if strings.HasPrefix(text, never) {
			return "", false
		}
	}
	if after, ok := strings.CutPrefix(text, `counter name "`); ok {
		_, rest, _ = strings.Cut(after, `" `)
		return rest, true
	}
	if after, ok := strings.CutPrefix(text, "counter "); ok {
		return after, true
	}
	key, text := t.fields(text)
	text, negated := strings.CutPrefix(text, "!= ")
	text, isMap := strings.CutPrefix(text, "vmap ")
	var operand string
	if strings.HasPrefix(text, "{") {
		operand, rest, _ = strings.Cut(text[2:], " }")
	} else {
		operand, rest, _ = strings.Cut(text, " ")
	}
	rest = strings.TrimSpace(rest)
	value, found := t.lookup(operand, key)
	if isMap {
		return value, found
	}
	return rest, found != negated
}

// fields consumes the fields of a match and returns their values, joined as in a key.
func (t *traversal) fields(text string) (key, rest string) {
	f := t.flow
	values := []struct{ field, value string }{
		{"ct original ip saddr ", f.Source.String()}, {"ct original ip6 saddr ", f.Source.String()},
		{"ct reply ip saddr ", f.Destination.String()}, {"ct reply ip6 saddr ", f.Destination.String()},
		{"meta l4proto ", f.Protocol.String()}, {"ct reply proto-src ", strconv.Itoa(int(f.Port))},
	}
	var keys []string
	for {
		n := len(keys)
		for _, v := range values {
			if after, ok := strings.CutPrefix(text, v.field); ok {
				keys, text = append(keys, v.value), after
				break
			}
		}
		if len(keys) == n {
			panic("unknown match: " + text)
		}
		after, more := strings.CutPrefix(text, ". ")
		if !more {
			return strings.Join(keys, separator), text
		}
		text = after
	}
}

// lookup finds a key in a set, or among values between commas.
func (t *traversal) lookup(operand, key string) (value string, ok bool) {
	name, isSet := strings.CutPrefix(operand, "@")
	if !isSet {
		for _, v := range strings.Split(operand, ", ") {
			if within(v, key) {
				return "", true
			}
		}
		return "", false
	}
	s := t.sets[name]
	if s == nil {
		panic("no set " + name)
	}
	if e := s.elements[key]; e != nil {
		return e.GetValue(), true
	}
	if len(s.declaration.GetFlags()) > 0 {
		for _, e := range s.elements {
			if within(e.GetKey(), key) {
				return e.GetValue(), true
			}
		}
	}
	return "", false
}

// within reports whether a range, a prefix or a single value has a key.
func within(of, key string) bool {
	if of == key {
		return true
	}
	if p, err := netip.ParsePrefix(of); err == nil {
		a, err := netip.ParseAddr(key)
		return err == nil && p.Contains(a)
	}
	first, last, ok := strings.Cut(of, "-")
	if !ok {
		return false
	}
	if a, err := netip.ParseAddr(key); err == nil {
		from, err1 := netip.ParseAddr(first)
		to, err2 := netip.ParseAddr(last)
		return err1 == nil && err2 == nil && !a.Less(from) && !to.Less(a)
	}
	n, err := strconv.Atoi(key)
	from, err1 := strconv.Atoi(first)
	to, err2 := strconv.Atoi(last)
	return err == nil && err1 == nil && err2 == nil && from <= n && n <= to
}

// protocolsOf are those of flows; 1 stands for all without ports.
var protocolsOf = map[string]model.Protocol{"": 1, "TCP": model.TCP, "UDP": model.UDP, "SCTP": model.SCTP}
