package syntax

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-proxy/weft/nft"
)

// set reads the declaration of a set or map.
func (r *jsonReader) set(o jsonNode, t *fileTable, isMap bool) {
	name := r.name(o.get("name"))
	if name == "" {
		return
	}
	s := &fileSet{Set: nft.Set{Name: name}, isMap: isMap}
	var types []string
	for _, part := range o.get("type").list() {
		types = append(types, part.text())
	}
	s.Type = strings.Join(types, " . ")
	if isMap {
		s.Type += " : " + o.get("map").text()
	}
	for _, f := range o.get("flags").list() {
		s.Flags = append(s.Flags, f.text())
	}
	s.Timeout, s.GCInterval = r.seconds(o.get("timeout")), r.seconds(o.get("gc-interval"))
	if n := o.get("size"); n.v != nil {
		size, err := strconv.ParseUint(n.number32(), 10, 32)
		if err != nil {
			r.fail(n.errorf("unexpected %s: want a number of at most 32 bits", n.describe()))
		}
		s.Size = uint32(size)
	}
	s.Policy, s.Comment = o.get("policy").text(), o.get("comment").text()
	s.AutoMerge, _ = o.get("auto-merge").v.(bool)
	for _, stmt := range o.get("stmt").list() {
		s.Stateful = append(s.Stateful, r.text(func(x *jsonText) { x.stmt(stmt) }))
	}
	if t.set(name) != nil {
		r.fail(o.get("name").errorf("set %s is declared twice", name))
		return
	}
	t.setIndex[name] = len(t.sets)
	t.sets = append(t.sets, s)
	r.elem(o.get("elem"), &s.Set)
}

// elements reads the elements of an add command.
func (r *jsonReader) elements(o jsonNode, t *fileTable) {
	s := t.set(o.get("name").text())
	if s == nil {
		r.fail(o.get("name").errorf("set %s of table %s is not declared", o.get("name").describe(), t.table.ID()))
		return
	}
	r.elem(o.get("elem"), &s.Set)
}

// elem reads elements of a set or map.
func (r *jsonReader) elem(n jsonNode, s *nft.Set) {
	kinds := typeKinds(s.Type)
	for _, e := range n.list() {
		key, value := e, jsonNode{}
		if pair := e.list(); e.isList() && len(pair) == 2 {
			key, value = pair[0], pair[1]
		}
		if len(r.errs) >= MaxErrors {
			return
		}
		s.Elements = append(s.Elements, r.element(key, value, kinds))
	}
}

// typeKinds returns how the parts of keys of a type are written.
func typeKinds(typ string) []jsonKind {
	key, _, _ := strings.Cut(typ, " : ")
	parts := strings.Split(key, " . ")
	out := make([]jsonKind, len(parts))
	for i, p := range parts {
		switch p {
		case "ifname", "iface_index", "string", "hour", "day", "time":
			out[i] = kindString
		case "relative_time":
			out[i] = kindSeconds
		}
	}
	return out
}

// element reads one element; value is a map's data.
func (r *jsonReader) element(n, value jsonNode, kinds []jsonKind) nft.Element {
	if name, arg, ok := n.only(); ok && name == "elem" {
		n = arg
	}
	var e nft.Element
	key := n
	if n.has("val") {
		key = n.get("val")
		e.Timeout, e.Expires = r.seconds(n.get("timeout")), r.seconds(n.get("expires"))
		e.Comment = n.get("comment").text()
		for _, stmt := range statefulNames {
			if _, ok := n.object()[stmt]; ok {
				e.Stateful = append(e.Stateful, r.text(func(x *jsonText) { x.named(stmt, n.get(stmt)) }))
			}
		}
	}
	e.Key = r.text(func(x *jsonText) { x.elem(key, kinds, jsonNode{}) })
	if value.v != nil {
		e.Value = r.text(func(x *jsonText) { x.expr(value, nil) })
	}
	return e
}

// text returns what f writes.
func (r *jsonReader) text(f func(*jsonText)) string {
	x := &jsonText{}
	if f(x); x.err != nil {
		r.fail(x.err)
	}
	return x.b.String()
}

// seconds reads a time; null is none.
func (r *jsonReader) seconds(n jsonNode) time.Duration {
	if n.v == nil {
		return 0
	}
	s, err := strconv.ParseUint(n.number(), 10, 63)
	if err != nil || s > math.MaxInt64/uint64(time.Second) {
		r.fail(n.errorf("unexpected %s: want a number of seconds", n.describe()))
		return 0
	}
	return time.Duration(s) * time.Second
}

// flowtable reads a flowtable.
func (r *jsonReader) flowtable(o jsonNode, t *fileTable) {
	f := nft.Flowtable{Name: r.name(o.get("name")), Hook: o.get("hook").text()}
	if n := o.get("prio"); n.v != nil {
		f.Priority = n.describe()
	}
	for _, d := range o.get("dev").list() {
		f.Devices = append(f.Devices, d.text())
	}
	for _, flag := range o.get("flags").list() {
		f.Flags = append(f.Flags, flag.text())
	}
	t.flowtables = append(t.flowtables, &f)
}

// named reads a named object.
func (r *jsonReader) named(kind nft.ObjectKind, o jsonNode, t *fileTable) {
	x := &jsonText{}
	name := r.name(o.get("name"))
	switch kind {
	case nft.ObjectCounter:
		x.option(o, "packets", "packets")
		x.option(o, "bytes", "bytes")
	case nft.ObjectQuota:
		x.over(o)
		x.num(o.get("bytes"))
		x.str(" bytes")
		if o.has("used") && o.get("used").number() != "0" {
			x.option(o, "used", "used")
			x.str(" bytes")
		}
	case nft.ObjectLimit:
		x.limit(o)
	case nft.ObjectSecMark:
		x.quoted(o.get("context"), o.get("context").text())
	case nft.ObjectSynProxy:
		x.str("mss ")
		x.num(o.get("mss"))
		x.str("; wscale ")
		x.num(o.get("wscale"))
		x.words(o.get("flags"), "; ", " ")
	case nft.ObjectCTHelper:
		x.str("type ")
		x.quoted(o.get("type"), o.get("type").text())
		x.str(" protocol ")
		x.word(o.get("protocol"))
	case nft.ObjectCTTimeout:
		x.str("protocol ")
		x.word(o.get("protocol"))
	case nft.ObjectCTExpectation:
		x.expectation(o)
	}
	if o.has("l3proto") {
		x.str("; l3proto ")
		x.word(o.get("l3proto"))
	}
	if kind == nft.ObjectCTTimeout {
		x.policy(o.get("policy"))
	}
	if x.err != nil {
		r.fail(x.err)
		return
	}
	t.objects = append(t.objects, &nft.Object{
		Kind: kind, Name: name, Text: strings.TrimSpace(x.b.String()), Comment: o.get("comment").text(),
	})
}

// expectation writes the attributes of a ct expectation.
func (x *jsonText) expectation(o jsonNode) {
	x.str("protocol ")
	x.word(o.get("protocol"))
	x.str("; dport ")
	x.num(o.get("dport"))
	x.str("; timeout ")
	x.num(o.get("timeout"))
	// Milliseconds, unlike any other time of nft's JSON.
	x.str("ms; size ")
	x.num(o.get("size"))
}

// policy writes the times of a ct timeout in the order of their names.
func (x *jsonText) policy(n jsonNode) {
	var states []string
	for state := range n.object() {
		states = append(states, state)
	}
	if len(states) == 0 {
		return
	}
	slices.Sort(states)
	x.str("; policy = { ")
	for i, s := range states {
		if i > 0 {
			x.str(", ")
		}
		if !isName(s) {
			x.fail(n.get(s), "unexpected %q: want a state", s)
		}
		x.str(s + " : ")
		x.num(n.get(s))
	}
	x.str(" }")
}
