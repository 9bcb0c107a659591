package client

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Declaration returns what a fragment, table, chain or set says of itself: a
// shallow copy without its lists of messages (tables, chains, rules, elements and
// so on). It has every other field of the protocol, also those that are added
// later.
func Declaration[T proto.Message](m T) T {
	from := m.ProtoReflect()
	to := from.New()
	from.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if !field.IsList() || field.Message() == nil {
			to.Set(field, v)
		}
		return true
	})
	return to.Interface().(T) //nolint:forcetypeassert // New returns the type of its receiver
}
