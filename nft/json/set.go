package json

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/ruleset"
)

func (r *reader) set(o node, t *table, isMap bool) {
	name := r.name(o.get("name"))
	if name == "" {
		return
	}
	s := nft.Set{Name: name, Type: strings.Join(o.get("type").texts(), " . "), Flags: o.get("flags").texts()}
	if isMap {
		s.Type += " : " + o.get("map").text()
	}
	s.Timeout, s.GCInterval = r.seconds(o.get("timeout")), r.seconds(o.get("gc-interval"))
	if n := o.get("size"); n.v != nil {
		size, err := strconv.ParseUint(n.number32(), 10, 32)
		if err != nil {
			r.fail(n.errorf("unexpected %s: want a number of at most 32 bits", n.describe()))
		}
		s.Size = uint32(size)
	}
	s.Policy, s.Comment = o.get("policy").text(), o.get("comment").comment()
	s.AutoMerge, _ = o.get("auto-merge").v.(bool)
	for _, stmt := range o.get("stmt").list() {
		s.Stateful = append(s.Stateful, r.text(func(x *writer) { x.stmt(stmt) }))
	}
	if t.set(name) != nil {
		r.fail(o.get("name").errorf("set %s is declared twice", name))
		return
	}
	r.elem(o.get("elem"), &s)
	if isMap {
		t.maps[name] = len(t.Maps)
		t.Maps = append(t.Maps, nft.Map(s))
	} else {
		t.sets[name] = len(t.Sets)
		t.Sets = append(t.Sets, s)
	}
}

func (r *reader) elements(o node, t *table) {
	s := t.set(o.get("name").text())
	if s == nil {
		r.fail(o.get("name").errorf("set %s of table %s is not declared", o.get("name").describe(), t.ID()))
		return
	}
	r.elem(o.get("elem"), s)
}

func (r *reader) elem(n node, s *nft.Set) {
	forms := typeForms(s.Type)
	for _, e := range n.list() {
		if len(r.errs) >= ruleset.MaxErrors {
			return
		}
		key, value := e.pair()
		s.Elements = append(s.Elements, r.element(key, value, forms))
	}
}

// value is a map's data.
func (r *reader) element(n, value node, forms []form) nft.Element {
	key, options := n.element()
	e := nft.Element{
		Timeout: r.seconds(options.get("timeout")), Expires: r.seconds(options.get("expires")), Comment: options.get("comment").comment(),
	}
	for _, stmt := range statefulNames {
		if options.contains(stmt) {
			e.Stateful = append(e.Stateful, r.text(func(x *writer) { x.named(stmt, options.get(stmt)) }))
		}
	}
	e.Key = r.text(func(x *writer) { x.elem(key, forms, node{}) })
	if value.v != nil {
		e.Value = r.text(func(x *writer) { x.expr(value, nil) })
	}
	return e
}

func (r *reader) text(f func(*writer)) string {
	x := &writer{}
	if f(x); x.err != nil {
		r.fail(x.err)
	}
	return x.b.String()
}

func (r *reader) seconds(n node) time.Duration {
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
