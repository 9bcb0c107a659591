package wire_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weft-proxy/weft/frontends/source/wire"
)

// message returns a message with a field of each type.
func message() []byte {
	b := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "text")
	b = protowire.AppendVarint(protowire.AppendTag(b, 2, protowire.VarintType), 300)
	b = protowire.AppendFixed32(protowire.AppendTag(b, 3, protowire.Fixed32Type), 7)
	b = protowire.AppendFixed64(protowire.AppendTag(b, 4, protowire.Fixed64Type), 8)
	return protowire.AppendBytes(protowire.AppendTag(b, 5, protowire.BytesType), nil)
}

// texts returns the fields of a message.
func texts(message []byte) (out []string, err error) {
	err = wire.Fields(message, func(f wire.Field) error {
		out = append(out, fmt.Sprintf("%d/%d %q %d", f.Number, f.Type, f.Value, f.Varint))
		return nil
	})
	return out, err
}

func TestFields(t *testing.T) {
	got, err := texts(message())
	want := []string{`1/2 "text" 0`, `2/0 "" 300`, `3/5 "" 0`, `4/1 "" 0`, `5/2 "" 0`}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v: got %q, want %q", err, got, want)
	}
	group := protowire.AppendTag(protowire.AppendTag(nil, 1, protowire.StartGroupType), 1, protowire.EndGroupType)
	for name, damaged := range map[string][]byte{
		"cut off": message()[:3], "no value": protowire.AppendTag(nil, 1, protowire.VarintType), "number 0": {0, 0},
		"group": group, "type 7": {0x0f, 0}, "short": protowire.AppendTag(nil, 3, protowire.Fixed32Type),
	} {
		if got, err := texts(damaged); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestFieldValues(t *testing.T) {
	stop := errors.New("stop")
	var text string
	var number uint64
	err := wire.Fields(message(), func(f wire.Field) (err error) {
		switch f.Number {
		case 1:
			if _, err := f.Number64(); err == nil {
				t.Error("a string is a number")
			}
			if err := f.Message(func(wire.Field) error { return nil }); err == nil {
				t.Error("a text is a message")
			}
			return f.Text(&text)
		case 2:
			if err := f.Message(func(wire.Field) error { return nil }); err == nil {
				t.Error("a number is a message")
			}
			if err := f.Text(new(string)); err == nil {
				t.Error("a number is a string")
			}
			number, err = f.Number64()
			return err
		default:
			return stop
		}
	})
	if !errors.Is(err, stop) || text != "text" || number != 300 {
		t.Errorf("%v, %q, %d", err, text, number)
	}
}

// FuzzFields has messages of any content: protowire finds the same fields in those that are
// valid.
func FuzzFields(f *testing.F) {
	f.Add(message())
	f.Add([]byte{0x0b, 0x0c})
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := texts(data)
		n := 0
		for rest := data; len(rest) > 0; n++ {
			_, _, whole := protowire.ConsumeField(rest)
			if whole < 0 {
				if err == nil {
					t.Fatalf("%x: %q", data, got)
				}
				return
			}
			rest = rest[whole:]
		}
		if err == nil && len(got) != n {
			t.Fatalf("%x: %d of %d fields", data, len(got), n)
		}
	})
}
