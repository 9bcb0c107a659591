package weftv1

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// UnknownField is a field of a newer version of the protocol.
type UnknownField struct {
	// nil for a fragment
	Object *ObjectName
	Number protowire.Number
}

// UnknownField returns the first unknown field of a fragment, or nil.
func (f *Fragment) UnknownField() *UnknownField { return unknownField(f.ProtoReflect()) }

// UnknownField returns the first unknown field of a patch, or nil.
func (p *Patch) UnknownField() *UnknownField {
	if p == nil || p.onlyKnownElements() {
		return nil
	}
	return unknownField(p.ProtoReflect())
}

// onlyKnownElements avoids reflection for most patches: they only change elements.
func (p *Patch) onlyKnownElements() bool {
	if len(p.unknownFields) > 0 {
		return false
	}
	for _, t := range p.GetTables() {
		if t == nil || len(t.unknownFields) > 0 || len(t.DeleteObjects)+len(t.PutChains)+len(t.PutSets)+len(t.PutMaps)+len(t.PutObjects)+len(t.PutFlowtables) > 0 {
			return false
		}
		for _, e := range t.GetElements() {
			if e == nil || len(e.unknownFields) > 0 || unknownOfElements(e.GetAdd()) != nil || slices.ContainsFunc(e.AddPacked, (*PackedElements).unknown) || slices.ContainsFunc(e.RemovePacked, (*PackedElements).unknown) {
				return false
			}
		}
	}
	return true
}

func (p *PackedElements) unknown() bool { return p == nil || len(p.unknownFields) > 0 }

func unknownField(m protoreflect.Message) *UnknownField {
	if b := m.GetUnknown(); len(b) > 0 {
		number, _, _ := protowire.ConsumeTag(b)
		return &UnknownField{Number: number}
	}
	switch m := m.Interface().(type) {
	case *Set:
		if u := unknownOfElements(m.GetElements()); u != nil {
			return u
		}
	case *ElementPatch:
		if u := unknownOfElements(m.GetAdd()); u != nil {
			return u
		}
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		switch {
		case field.Message() == nil || !m.Has(field) || field.Message().Name() == "Element":
		case field.IsList():
			list := m.Get(field).List()
			for j := range list.Len() {
				child := list.Get(j).Message()
				if u := unknownField(child); u != nil {
					u.name(child.Interface(), field.Name(), j)
					return u
				}
			}
		default:
			if u := unknownField(m.Get(field).Message()); u != nil {
				return u
			}
		}
	}
	return nil
}

// unknownOfElements avoids reflection: there can be millions of elements.
func unknownOfElements(elements []*Element) *UnknownField {
	for j, e := range elements {
		if e == nil || len(e.ProtoReflect().GetUnknown())+len(e.Timeout.ProtoReflect().GetUnknown()) == 0 && e.State == nil {
			continue
		}
		if u := unknownField(e.ProtoReflect()); u != nil {
			u.name(e, "elements", j)
			return u
		}
	}
	return nil
}

// name completes u.Object from m, at a position of a list: the message with the field, or one
// around that.
func (u *UnknownField) name(m any, list protoreflect.Name, position int) {
	if u.Object == nil {
		// The kind in "put_chains" is "chain".
		u.Object = &ObjectName{Kind: strings.TrimSuffix(strings.TrimPrefix(string(list), "put_"), "s")}
		switch m := m.(type) {
		case *ElementPatch:
			u.Object.Kind = "set"
		case interface{ GetKind() string }:
			u.Object.Kind = m.GetKind()
		}
	}
	switch m := m.(type) {
	case *Rule:
		u.Object.Index = uint32(position + 1) //nolint:gosec // a count
	case *Element:
		u.Object.Key = m.GetKey()
	case *ElementPatch:
		u.Object.Name = m.GetSet()
	case *Table:
		u.Object.Family, u.Object.Table = m.GetFamily(), m.GetName()
	case *TablePatch:
		u.Object.Family, u.Object.Table = m.GetFamily(), m.GetName()
	case interface{ GetName() string }:
		u.Object.Name = m.GetName()
	}
}
