package cli

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-proxy/weft/nft/printable"
)

// Escape escapes the strings of a message of the aggregator for people, in place: content
// that an older aggregator accepted may have characters that forge lines or hide text.
// An excerpt keeps its line end and tabs. Values that are no messages are left as they are.
func Escape(v any) {
	if m, ok := v.(proto.Message); ok && m.ProtoReflect().IsValid() {
		escapeMessage(m.ProtoReflect())
	}
}

func escapeMessage(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
			// No message of the aggregator has one that is printed.
		case f.IsList() && f.Kind() == protoreflect.StringKind:
			for i := range v.List().Len() {
				v.List().Set(i, protoreflect.ValueOfString(printable.Escape(v.List().Get(i).String())))
			}
		case f.IsList() && f.Message() != nil:
			for i := range v.List().Len() {
				escapeMessage(v.List().Get(i).Message())
			}
		case f.IsList():
		case f.Message() != nil:
			escapeMessage(v.Message())
		case f.Kind() == protoreflect.StringKind && printable.Index(v.String()) >= 0:
			escape := printable.Escape
			if f.Name() == "excerpt" {
				escape = printable.Lines
			}
			m.Set(f, protoreflect.ValueOfString(escape(v.String())))
		}
		return true
	})
}
