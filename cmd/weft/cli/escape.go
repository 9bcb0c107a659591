package cli

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-proxy/weft/nft/printable"
)

// Escape escapes the strings of a proto.Message in place, except line ends and tabs of excerpts:
// content may forge lines or hide text.
func Escape(v any) {
	if m, ok := v.(proto.Message); ok && m.ProtoReflect().IsValid() {
		escapeMessage(m.ProtoReflect())
	}
}

func escapeMessage(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		// No printed message has a map.
		case f.IsMap(), f.Message() == nil && f.Kind() != protoreflect.StringKind:
		case f.IsList():
			for i := range v.List().Len() {
				v.List().Set(i, escaped(f, v.List().Get(i)))
			}
		default:
			m.Set(f, escaped(f, v))
		}
		return true
	})
}

func escaped(f protoreflect.FieldDescriptor, v protoreflect.Value) protoreflect.Value {
	switch {
	case f.Message() != nil:
		escapeMessage(v.Message())
		return v
	case f.Name() == "excerpt":
		return protoreflect.ValueOfString(printable.Lines(v.String()))
	default:
		return protoreflect.ValueOfString(printable.Escape(v.String()))
	}
}
