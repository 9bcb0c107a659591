package wire

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field is a message's field, valid until the message is changed.
type Field struct {
	Number protowire.Number
	// Type selects Value or Varint. Other types have no value.
	Type protowire.Type
	// a string, bytes or a message
	Value []byte
	// a number or boolean
	Varint uint64
}

var errGroup = errors.New("a group, which is not supported")

// Fields calls each for each field of a message and stops at the first error.
func Fields(message []byte, each func(Field) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		f := Field{Number: number, Type: kind}
		switch kind {
		case protowire.BytesType:
			f.Value, n = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			f.Varint, n = protowire.ConsumeVarint(message)
		case protowire.StartGroupType, protowire.EndGroupType:
			return errGroup
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		if err := each(f); err != nil {
			return err
		}
		message = message[n:]
	}
	return nil
}

// Bytes returns the value of a string, bytes or message field.
func (f Field) Bytes() ([]byte, error) {
	if f.Type != protowire.BytesType {
		return nil, f.unexpected()
	}
	return f.Value, nil
}

// Text sets a string to a field's value.
func (f Field) Text(to *string) error {
	v, err := f.Bytes()
	*to = string(v)
	return err
}

// Message calls each for each field of a message field.
func (f Field) Message(each func(Field) error) error {
	v, err := f.Bytes()
	if err != nil {
		return err
	}
	return Fields(v, each)
}

// Number64 returns the value of a number or boolean field.
func (f Field) Number64() (uint64, error) {
	if f.Type != protowire.VarintType {
		return 0, f.unexpected()
	}
	return f.Varint, nil
}

func (f Field) unexpected() error {
	return fmt.Errorf("field %d: unexpected type %d", f.Number, f.Type)
}
