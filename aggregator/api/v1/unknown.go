package weftv1

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// UnknownField is a field of a message that this version of the protocol does not
// have.
type UnknownField struct {
	// Object is the object that the message is about; nil for a fragment.
	Object *ObjectName
	Number protowire.Number
}

// UnknownField returns the first unknown field of a fragment, or nil.
func (f *Fragment) UnknownField() *UnknownField {
	w := unknownFields{}
	w.check(f, nil)
	if m := f.GetTtl(); m != nil {
		w.check(m, nil)
	}
	if m := f.GetExpireTime(); m != nil {
		w.check(m, nil)
	}
	for _, t := range f.GetTables() {
		w.table = &ObjectName{Kind: "table", Family: t.GetFamily(), Table: t.GetName()}
		w.check(t, w.table)
		w.declarations(t.GetChains(), t.GetSets(), t.GetMaps(), t.GetObjects(), t.GetFlowtables())
	}
	return w.found
}

// UnknownField returns the first unknown field of a patch, or nil.
func (p *Patch) UnknownField() *UnknownField {
	w := unknownFields{}
	w.check(p, nil)
	for _, t := range p.GetTables() {
		w.table = &ObjectName{Kind: "table", Family: t.GetFamily(), Table: t.GetName()}
		w.check(t, w.table)
		w.declarations(t.GetPutChains(), t.GetPutSets(), t.GetPutMaps(), t.GetPutObjects(), t.GetPutFlowtables())
		for _, o := range t.GetDeleteObjects() {
			w.check(o, w.name(o.GetKind(), o.GetName()))
		}
		for _, e := range t.GetElements() {
			w.check(e, w.name("set", e.GetSet()))
			w.elements(e.GetSet(), e.GetAdd())
		}
	}
	return w.found
}

// unknownFields finds the first unknown field. It calls no generic walk over fields,
// because a fragment can have millions of elements.
type unknownFields struct {
	table *ObjectName
	found *UnknownField
}

// check examines one message, without those in it.
func (w *unknownFields) check(m proto.Message, object *ObjectName) {
	if w.found != nil {
		return
	}
	if b := m.ProtoReflect().GetUnknown(); len(b) > 0 {
		number, _, _ := protowire.ConsumeTag(b)
		w.found = &UnknownField{Object: object, Number: number}
	}
}

// name names an object of the present table.
func (w *unknownFields) name(kind, name string) *ObjectName {
	return &ObjectName{Kind: kind, Family: w.table.GetFamily(), Table: w.table.GetTable(), Name: name}
}

func (w *unknownFields) declarations(chains []*Chain, sets, maps []*Set, objects []*Object, flowtables []*Flowtable) {
	for _, c := range chains {
		w.check(c, w.name("chain", c.GetName()))
		for i, r := range c.GetRules() {
			if w.found == nil && len(r.ProtoReflect().GetUnknown()) > 0 {
				n := w.name("rule", c.GetName())
				n.Index = uint32(i + 1) //nolint:gosec // a count
				w.check(r, n)
			}
		}
	}
	w.sets("set", sets)
	w.sets("map", maps)
	for _, o := range objects {
		w.check(o, w.name(o.GetKind(), o.GetName()))
	}
	for _, f := range flowtables {
		w.check(f, w.name("flowtable", f.GetName()))
	}
}

func (w *unknownFields) sets(kind string, sets []*Set) {
	for _, s := range sets {
		n := w.name(kind, s.GetName())
		w.check(s, n)
		if s.Timeout != nil {
			w.check(s.Timeout, n)
		}
		if s.GcInterval != nil {
			w.check(s.GcInterval, n)
		}
		w.elements(s.GetName(), s.GetElements())
	}
}

func (w *unknownFields) elements(set string, elements []*Element) {
	for _, e := range elements {
		if e == nil || w.found != nil {
			continue
		}
		w.element(set, e, e)
		if e.Timeout != nil {
			w.element(set, e, e.Timeout)
		}
		if e.State != nil {
			w.element(set, e, e.State)
			if e.State.Expires != nil {
				w.element(set, e, e.State.Expires)
			}
		}
	}
}

// element is check for a message of an element, which is named only if that is
// needed.
func (w *unknownFields) element(set string, e *Element, m proto.Message) {
	if len(m.ProtoReflect().GetUnknown()) == 0 {
		return
	}
	n := w.name("element", set)
	n.Key = e.GetKey()
	w.check(m, n)
}
