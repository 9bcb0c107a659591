package admission

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-proxy/weft/aggregator/access"
)

const (
	// approximate bytes of a decoded message, beyond its encoding
	messageSize = 160
	// the same for a string in a list
	stringSize = 16
	// the same for an element in PackedElements
	unpackedSize = 112
	// MaxDecoded is the memory of a decoded request, in bytes. The largest request takes this much
	// if its messages have 20 bytes.
	MaxDecoded = 256 << 20
)

// Size is the content of an encoded request, measured before decoding, because decoding can take a
// hundred times the memory: two bytes are a table.
type Size struct {
	Fragments, Tables, Chains, Sets, Rules, Objects, Elements int
	// sets with elements changed by a patch
	Changes int
	// strings of lists, such as names to delete
	Names int
	// fragments' names in a plan
	Withdrawals int
	// approximate bytes after decoding
	Decoded int
}

// Measure returns the size of the encoding b of a message m.
//
// Possible errors: errors of package protowire.
func Measure(m protoreflect.MessageDescriptor, b []byte) (Size, error) {
	s := Size{Decoded: len(b)}
	err := s.measure(m, b)
	return s, err
}

func (s *Size) measure(m protoreflect.MessageDescriptor, b []byte) error {
	s.count(m.Name())
	return eachField(m, b, func(f protoreflect.FieldDescriptor, whole, value []byte) error {
		switch {
		case f == nil && m.Name() == packedElements:
			s.countPacked(whole)
		case f == nil:
			return nil
		case f.Message() != nil:
			return s.measure(f.Message(), value)
		case f.IsList():
			s.Decoded += stringSize
			*s.list(m.Name())++
		}
		return nil
	})
}

func (s *Size) list(message protoreflect.Name) *int {
	if message == "ElementPatch" {
		return &s.Elements
	}
	return &s.Names
}

func (s *Size) count(message protoreflect.Name) {
	s.Decoded += messageSize
	switch message {
	case "Fragment", "Patch":
		s.Fragments++
	case "Table", "TablePatch":
		s.Tables++
	case "Chain":
		s.Chains++
	case "Set":
		s.Sets++
	case "Rule":
		s.Rules++
	case "ElementPatch":
		s.Changes++
	case "FragmentName":
		s.Withdrawals++
	case "Object", "ObjectReference", "Flowtable":
		s.Objects++
	case "Element", packedElements:
		s.Elements++
	}
}

const packedElements = "PackedElements"

// countPacked adds the stated number of elements. Nothing is allocated for a number that the keys
// do not have.
func (s *Size) countPacked(whole []byte) {
	number, typ, tag := protowire.ConsumeTag(whole)
	if number == 1 && typ == protowire.VarintType {
		n, _ := protowire.ConsumeVarint(whole[tag:])
		s.Elements += int(uint32(n))               //nolint:gosec // as the field is decoded
		s.Decoded += int(uint32(n)) * unpackedSize //nolint:gosec // as above
	}
}

// eachField calls f with each field's descriptor, nil if unknown; its whole encoding; and its
// content, if it is a message, a string or bytes.
func eachField(m protoreflect.MessageDescriptor, b []byte, f func(field protoreflect.FieldDescriptor, whole, value []byte) error) error {
	for len(b) > 0 {
		number, typ, tag := protowire.ConsumeTag(b)
		if tag < 0 {
			return protowire.ParseError(tag)
		}
		n := protowire.ConsumeFieldValue(number, typ, b[tag:])
		if n < 0 {
			return protowire.ParseError(n)
		}
		whole := b[:tag+n]
		b = b[tag+n:]
		var field protoreflect.FieldDescriptor
		var value []byte
		if typ == protowire.BytesType {
			field = m.Fields().ByNumber(number)
			value, _ = protowire.ConsumeBytes(whole[tag:])
		}
		if err := f(field, whole, value); err != nil {
			return err
		}
	}
	return nil
}

// Head returns the encoding of a request without its lists of messages. The rest identifies the
// update.
//
// Possible errors: errors of package protowire.
func Head(m protoreflect.MessageDescriptor, b []byte) ([]byte, error) {
	var head []byte
	err := eachField(m, b, func(f protoreflect.FieldDescriptor, whole, value []byte) error {
		switch {
		case f == nil || f.Message() == nil:
			head = append(head, whole...)
		case !f.IsList():
			nested, err := Head(f.Message(), value)
			if err != nil {
				return err
			}
			head = protowire.AppendBytes(protowire.AppendTag(head, f.Number(), protowire.BytesType), nested)
		}
		return nil
	})
	return head, err
}

// Check compares a request with the limits of an update, and of its publisher unless p is nil. held
// returns the publisher's current content: it may send as much again, or remove it.
//
// Possible errors: a *access.Refusal, ErrTooLarge.
func (s Size) Check(p *access.Publisher, held func() (rules, elements int)) error {
	updates := max(1, s.Fragments)
	for _, c := range []struct {
		n, most int
		what    string
	}{
		{s.Fragments + s.Withdrawals, MaxPlan, "fragments"},
		{s.Tables, updates * MaxTables, "tables"},
		{s.Chains, MaxChains, "chains"},
		{s.Sets, MaxSets, "sets and maps"},
		{s.Changes, MaxSets, "changes of sets and maps"},
		{s.Names, MaxChains, "names"},
		{s.Objects, MaxObjects, "named objects and flowtables"},
		{s.Rules, MaxRules, "rules"},
		{s.Elements, MaxElements, "elements"},
		{s.Decoded, MaxDecoded, "bytes after it is decoded"},
	} {
		if c.n > c.most {
			return fmt.Errorf("%w: it has %d %s: at most %d are allowed: split it into several fragments, or send the snapshot in several parts", ErrTooLarge, c.n, c.what, c.most)
		}
	}
	if p == nil {
		return nil
	}
	rules := s.Rules + s.Objects
	if p.Brings(access.LimitRules, rules) == nil && p.Brings(access.LimitElements, s.Elements) == nil {
		return nil
	}
	heldRules, heldElements := held()
	if r := p.Brings(access.LimitRules, rules-heldRules); r != nil {
		return r
	}
	if r := p.Brings(access.LimitElements, s.Elements-heldElements); r != nil {
		return r
	}
	return nil
}
