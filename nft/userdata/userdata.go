package userdata

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/weft-proxy/weft/nft"
)

// Fingerprint is the first half of a SHA-256 over a compiled rule.
type Fingerprint [16]byte

// Sizes in bytes.
const (
	// MaxComment is NFTNL_UDATA_COMMENT_MAXLEN.
	MaxComment = 128
	// Max is NFT_USERDATA_MAXLEN.
	Max = 256
	// MaxOwner leaves room for comment and fingerprint.
	MaxOwner = Max - (2 + MaxComment + 1) - (2 + len(Fingerprint{})) - 2
)

// nft uses the types from 0 up for each kind of object (libnftnl udata.h), and skips unknown types.
const (
	udataComment      = 0 // tables, chains, rules, objects and elements
	udataElementFlags = 1 // elements

	udataWeft        = 0xe0 // tables: the version of this format
	UdataFingerprint = 0xe1 // rules: a Fingerprint
	UdataOwner       = 0xe2 // rules: the publisher, as the caller names it

	udataVersion = 1

	// SET_ELEM_F_INTERVAL_OPEN of nft's rule.h
	elementIntervalOpen = 1
)

// ErrMalformed means no list of records, or a known record of wrong form.
var ErrMalformed = errors.New("malformed userdata")

// TableInfo is a table's userdata.
type TableInfo struct {
	Comment string
	// Ours means created by weft.
	Ours    bool
	Version uint8
}

// RuleInfo is a rule's userdata.
type RuleInfo struct {
	Comment     string
	Fingerprint Fingerprint
	// the publisher
	Owner string
	// Ours means that weft wrote the rule.
	Ours bool
}

// ElementInfo is an element's userdata.
type ElementInfo struct {
	Comment string
	// Open marks an interval up to the greatest key, without an end element.
	Open bool
}

// Table returns weft's mark and a comment. The error is from CheckComment.
func Table(comment string) ([]byte, error) {
	b, err := AppendComment(nil, comment)
	return append(b, udataWeft, 1, udataVersion), err
}

// ParseTable parses a table's userdata.
func ParseTable(b []byte) (info TableInfo, err error) {
	err = parse("table", b, &info, &info.Comment, func(typ byte, value []byte) bool {
		if typ == udataWeft && len(value) == 1 {
			info.Ours, info.Version = true, value[0]
		}
		return typ != udataWeft || len(value) == 1
	})
	return info, err
}

// ParseComment parses the userdata of a chain or named object.
func ParseComment(b []byte) (comment string, err error) {
	err = parse("object", b, &comment, &comment, func(byte, []byte) bool { return true })
	return comment, err
}

// AppendElement appends an element's userdata, if any. nft needs the mark of open intervals to
// print them.
func AppendElement(dst []byte, comment string, open bool) ([]byte, error) {
	dst, err := AppendComment(dst, comment)
	if err != nil || !open {
		return dst, err
	}
	return AppendUint32(dst, udataElementFlags, elementIntervalOpen), nil
}

// ParseElement parses an element's userdata.
func ParseElement(b []byte) (info ElementInfo, err error) {
	err = parse("element", b, &info, &info.Comment, func(typ byte, value []byte) bool {
		if typ != udataElementFlags {
			return true
		}
		flags, ok := ParseUint32(value)
		info.Open = flags&elementIntervalOpen != 0
		return ok
	})
	return info, err
}

// ParseRule parses a rule's userdata.
func ParseRule(b []byte) (info RuleInfo, err error) {
	err = parse("rule", b, &info, &info.Comment, func(typ byte, value []byte) bool {
		switch typ {
		case UdataFingerprint:
			if len(value) != len(info.Fingerprint) {
				return false
			}
			info.Fingerprint, info.Ours = Fingerprint(value), true
		case UdataOwner:
			info.Owner = string(value)
		}
		return true
	})
	return info, err
}

// f returns false for a malformed record. On errors info is its zero value.
func parse[T any](what string, b []byte, info *T, comment *string, f func(typ byte, value []byte) bool) error {
	err := EachRecord(b, func(typ byte, value []byte) error {
		var ok bool
		if typ == udataComment {
			*comment, ok = ParseString(value)
			*comment = nft.ParseComment(*comment)
		} else {
			ok = f(typ, value)
		}
		if !ok {
			return ErrMalformed
		}
		return nil
	})
	if err != nil {
		*info = *new(T)
		return fmt.Errorf("parse %s userdata: %w", what, err)
	}
	return nil
}

// CheckComment rejects more than MaxComment bytes, double quotes and control characters: nft could
// not read them back.
func CheckComment(comment string) error {
	if comment == nft.EmptyComment {
		return nil
	}
	if len(comment) > MaxComment {
		return fmt.Errorf("comment %.40q... has %d bytes: want at most %d", comment, len(comment), MaxComment)
	}
	if i := strings.IndexFunc(comment, func(r rune) bool { return r < ' ' || r == '"' || r == 0x7f }); i >= 0 {
		return fmt.Errorf("comment %q: unexpected %q at byte %d: quotes and control characters cannot be written in nft", comment, comment[i], i)
	}
	return nil
}

// AppendComment appends a comment, unless empty. On errors it returns dst unchanged.
func AppendComment(dst []byte, comment string) ([]byte, error) {
	if comment == "" {
		return dst, nil
	}
	if err := CheckComment(comment); err != nil {
		return dst, err
	}
	return AppendString(dst, udataComment, nft.CommentText(comment)), nil
}

// AppendString appends s and a NUL. It panics if s exceeds 254 bytes.
func AppendString(dst []byte, typ byte, s string) []byte {
	if len(s) >= math.MaxUint8 {
		panic(fmt.Sprintf("userdata: record of a string of %d bytes", len(s)))
	}
	dst = append(dst, typ, byte(len(s)+1))
	dst = append(dst, s...)
	return append(dst, 0)
}

// ParseString is the inverse of AppendString; false without a NUL.
func ParseString(value []byte) (string, bool) {
	if len(value) == 0 || value[len(value)-1] != 0 {
		return "", false
	}
	return string(value[:len(value)-1]), true
}

// AppendUint32 appends a native-endian number.
func AppendUint32(dst []byte, typ byte, v uint32) []byte {
	return binary.NativeEndian.AppendUint32(append(dst, typ, 4), v)
}

// ParseUint32 is the inverse of AppendUint32; false unless four bytes.
func ParseUint32(value []byte) (uint32, bool) {
	if len(value) != 4 {
		return 0, false
	}
	return binary.NativeEndian.Uint32(value), true
}

// FindRecord returns the first record of a type; false if missing or malformed.
func FindRecord(b []byte, typ byte) (value []byte, ok bool) {
	err := EachRecord(b, func(t byte, v []byte) error {
		if t == typ && !ok {
			value, ok = v, true
		}
		return nil
	})
	return value, ok && err == nil
}

// EachRecord returns the first error of f, or ErrMalformed if b ends within a record.
func EachRecord(b []byte, f func(typ byte, value []byte) error) error {
	for len(b) > 0 {
		if len(b) < 2 || len(b)-2 < int(b[1]) {
			return ErrMalformed
		}
		if err := f(b[0], b[2:2+int(b[1])]); err != nil {
			return err
		}
		b = b[2+int(b[1]):]
	}
	return nil
}
