package client

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Declaration returns a shallow copy of a fragment, table, chain or set without its lists of
// messages (tables, rules, elements and so on).
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
