package client

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// fill sets every field of a message, and of the messages in it, to a distinct value.
func fill(m protoreflect.Message, name string) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		value := func() protoreflect.Value { return scalar(field, fmt.Sprint(name, field.Name())) }
		switch {
		case field.ContainingOneof() != nil && !field.HasOptionalKeyword() && i > 0 && field.ContainingOneof() == fields.Get(i-1).ContainingOneof():
		case field.IsList() && field.Message() != nil:
			fill(m.Mutable(field).List().AppendMutable().Message(), name+string(field.Name()))
		case field.IsList():
			m.Mutable(field).List().Append(value())
		case field.Message() != nil:
			fill(m.Mutable(field).Message(), name+string(field.Name()))
		default:
			m.Set(field, value())
		}
	}
}

// scalar returns a value of a field that has no message.
func scalar(field protoreflect.FieldDescriptor, text string) protoreflect.Value {
	switch field.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(text)
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(text))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(1)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(7)
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(7)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(7)
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(7)
	default:
		panic("a field of another kind: " + field.FullName())
	}
}

// filled returns a fragment that has every field of the protocol.
func filled(name string) *weftv1.Fragment {
	f := &weftv1.Fragment{}
	fill(f.ProtoReflect(), "")
	f.Name, f.Nft = name, ""
	return f
}

func TestSplitJoinsToTheSame(t *testing.T) {
	f := filled("f")
	for i := range 3 {
		table := filled("f").GetTables()[0]
		table.Name = fmt.Sprintf("t%d", i)
		table.Chains = append(table.Chains, &weftv1.Chain{Name: "a", Rules: make([]*weftv1.Rule, 300)})
		for j := range table.Chains[1].Rules {
			table.Chains[1].Rules[j] = &weftv1.Rule{Text: fmt.Sprintf("tcp dport %d drop", j+1)}
		}
		set := table.GetSets()[0]
		for j := range 9000 {
			set.Elements = append(set.Elements, &weftv1.Element{Key: fmt.Sprintf("10.%d.%d.%d", i, j>>8, j&255)})
		}
		set.Packed = nil
		for range 3 {
			set.Packed = append(set.Packed, &weftv1.PackedElements{Count: 3000, Keys: make([]byte, 4*3000)})
		}
		f.Tables = append(f.Tables, table)
	}
	joined := &weftv1.Fragment{}
	n, last := 0, false
	for _, part := range split(f, 5) {
		if last {
			t.Fatal("a part after the last")
		}
		n++
		last = !part.GetMore()
		s := part.GetSnapshot()
		if part.GetId() != 5 || !proto.Equal(Declaration(s), Declaration(f)) {
			t.Fatalf("part %d has the head %v %v", n, part.GetId(), s)
		}
		if got := weigh(s); got > partWeight+301*ruleWeight {
			t.Fatalf("part %d weighs %d", n, got)
		}
		join(joined, s)
	}
	if !last || n < 7 {
		t.Fatalf("%d parts, the last marked: %v", n, last)
	}
	if !proto.Equal(f, joined) {
		t.Fatal("the parts do not add up to the fragment")
	}
	small := &weftv1.Fragment{Name: "small", Tables: []*weftv1.Table{{Name: "t"}}}
	for _, part := range split(small, 1) {
		if part.GetMore() || part.GetSnapshot() != small {
			t.Fatalf("small fragment is sent as %v", part)
		}
	}
}

// join does what the aggregator does with parts: what a table says of itself is in
// the first of its parts.
func join(f, part *weftv1.Fragment) {
	f.Name, f.Priority, f.Lifetime, f.Expiration = part.GetName(), part.GetPriority(), part.GetLifetime(), part.GetExpiration()
	for _, pt := range part.GetTables() {
		i := slices.IndexFunc(f.GetTables(), func(t *weftv1.Table) bool { return t.GetName() == pt.GetName() })
		if i < 0 {
			i = len(f.GetTables())
			f.Tables = append(f.Tables, Declaration(pt))
		}
		table := f.GetTables()[i]
		table.Chains = append(table.Chains, pt.GetChains()...)
		table.Objects = append(table.Objects, pt.GetObjects()...)
		table.Flowtables = append(table.Flowtables, pt.GetFlowtables()...)
		table.Sets = joinSets(table.GetSets(), pt.GetSets())
		table.Maps = joinSets(table.GetMaps(), pt.GetMaps())
	}
}

func joinSets(sets, parts []*weftv1.Set) []*weftv1.Set {
next:
	for _, p := range parts {
		for _, s := range sets {
			if s.GetName() == p.GetName() {
				s.Elements = append(s.Elements, p.GetElements()...)
				s.Packed = append(s.Packed, p.GetPacked()...)
				continue next
			}
		}
		sets = append(sets, proto.CloneOf(p))
	}
	return sets
}

// TestDifferenceOfEachField changes one field at a time, of every message of a
// fragment: diff finds it.
func TestDifferenceOfEachField(t *testing.T) {
	fields := 0
	var clearOne func(m protoreflect.Message, then func(string))
	clearOne = func(m protoreflect.Message, then func(string)) {
		m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			was := v
			switch {
			case field.IsList() && field.Message() != nil:
				clearOne(v.List().Get(0).Message(), then)
			case field.Message() != nil:
				clearOne(v.Message(), then)
			}
			m.Clear(field)
			then(string(field.FullName()))
			m.Set(field, was)
			return true
		})
	}
	from, to := filled("f"), filled("f")
	clearOne(to.ProtoReflect(), func(field string) {
		fields++
		if p, ok := diff(from, to); p == nil && ok {
			t.Errorf("a change of %s is not seen", field)
		}
	})
	if fields < 40 {
		t.Errorf("%d fields: the test does not test", fields)
	}
}
