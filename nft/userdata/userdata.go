package userdata

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// Object carries an object's comment; nil for none.
func Object(comment string) ([]byte, error) { return AppendComment(nil, comment) }

// ParseObject returns an object's comment.
func ParseObject(b []byte) (string, error) {
	comment := ""
	err := EachRecord(b, func(typ byte, value []byte) (err error) {
		if typ == udataComment {
			comment, err = ParseComment(value)
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("parse object userdata: %w", err)
	}
	return comment, nil
}

// FindRecord returns the value of the first record of a type.
func FindRecord(b []byte, typ byte) (value []byte, ok bool) {
	err := EachRecord(b, func(t byte, v []byte) error {
		if t == typ && !ok {
			value, ok = v, true
		}
		return nil
	})
	return value, ok && err == nil
}

// Fingerprint is the first half of a SHA-256 over a compiled rule.
type Fingerprint [16]byte

// Limits of nft and the kernel, in bytes.
const (
	// MaxComment is the longest comment that nft reads
	// (NFTNL_UDATA_COMMENT_MAXLEN).
	MaxComment = 128
	// Max is the greatest size of an object's userdata
	// (NFT_USERDATA_MAXLEN).
	Max = 256
	// MaxOwner is the longest owner that a rule's userdata takes beside a
	// comment of MaxComment bytes and the fingerprint.
	MaxOwner = Max - (2 + MaxComment + 1) - (2 + len(Fingerprint{})) - 2
)

// Userdata is a list of records of one byte type, one byte length, value.
// nft uses the types from 0 up, separately for each kind of object (libnftnl
// udata.h), and skips those that it does not know.
const (
	udataComment      = 0 // tables, chains, rules and elements
	udataElementFlags = 1 // elements

	// The types that are weft's own are far above those of nft.
	udataWeft        = 0xe0 // tables: the version of this format
	UdataFingerprint = 0xe1 // rules: what the rule compiles to
	UdataOwner       = 0xe2 // rules: whose rule it is

	// udataVersion is the version of weft's own records.
	udataVersion = 1
	// elementIntervalOpen marks the last interval of a set that has no end
	// (SET_ELEM_F_INTERVAL_OPEN of nft's rule.h).
	elementIntervalOpen = 1
)

// Errors of userdata that did not come from nft or weft.
var ErrMalformed = errors.New("malformed userdata")

// TableInfo is what a table's userdata says.
type TableInfo struct {
	Comment string
	// Ours is true for tables that weft created, Version the version of the
	// format in which weft marked it.
	Ours    bool
	Version uint8
}

// RuleInfo is what a rule's userdata says.
type RuleInfo struct {
	Comment string
	// Fingerprint identifies the rule's content; Owner is whose rule it is.
	Fingerprint Fingerprint
	Owner       string
	// Ours is true where weft wrote the rule: it has a fingerprint.
	Ours bool
}

// ElementInfo is what an element's userdata says.
type ElementInfo struct {
	Comment string
	// Open marks the begin of an interval without an end element, which
	// reaches up to the greatest key.
	Open bool
}

// Table marks a table as weft's and carries its comment.
func Table(comment string) ([]byte, error) {
	b, err := AppendComment(nil, comment)
	if err != nil {
		return nil, err
	}
	return append(b, udataWeft, 1, udataVersion), nil
}

// ParseTable reads what TableUserData or nft wrote.
func ParseTable(b []byte) (TableInfo, error) {
	var info TableInfo
	err := EachRecord(b, func(typ byte, value []byte) (err error) {
		switch typ {
		case udataComment:
			info.Comment, err = ParseComment(value)
		case udataWeft:
			if len(value) != 1 {
				return ErrMalformed
			}
			info.Ours, info.Version = true, value[0]
		}
		return err
	})
	if err != nil {
		return TableInfo{}, fmt.Errorf("parse table userdata: %w", err)
	}
	return info, nil
}

// Chain carries a chain's comment; nil for none.
func Chain(comment string) ([]byte, error) { return AppendComment(nil, comment) }

// ParseChain returns a chain's comment.
func ParseChain(b []byte) (comment string, err error) {
	err = EachRecord(b, func(typ byte, value []byte) (err error) {
		if typ == udataComment {
			comment, err = ParseComment(value)
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("parse chain userdata: %w", err)
	}
	return comment, nil
}

// Element is AppendElementUserData into a new slice; nil for an
// element that needs none.
func Element(comment string, open bool) ([]byte, error) {
	return AppendElement(nil, comment, open)
}

// AppendElement appends the userdata of an element. Open is true for
// the begin of an interval that has no end element because it reaches up to
// the greatest key; nft needs the mark to print such an interval.
func AppendElement(dst []byte, comment string, open bool) ([]byte, error) {
	dst, err := AppendComment(dst, comment)
	if err != nil || !open {
		return dst, err
	}
	dst = append(dst, udataElementFlags)
	return AppendUint32(dst, elementIntervalOpen), nil
}

// ParseElement reads what AppendElementUserData or nft wrote.
func ParseElement(b []byte) (ElementInfo, error) {
	var info ElementInfo
	err := EachRecord(b, func(typ byte, value []byte) (err error) {
		switch typ {
		case udataComment:
			info.Comment, err = ParseComment(value)
		case udataElementFlags:
			flags, ok := ParseUint32(value)
			if !ok {
				return ErrMalformed
			}
			info.Open = flags&elementIntervalOpen != 0
		}
		return err
	})
	if err != nil {
		return ElementInfo{}, fmt.Errorf("parse element userdata: %w", err)
	}
	return info, nil
}

// ParseRule reads what UserData or nft wrote.
func ParseRule(b []byte) (RuleInfo, error) {
	var info RuleInfo
	err := EachRecord(b, func(typ byte, value []byte) (err error) {
		switch typ {
		case udataComment:
			info.Comment, err = ParseComment(value)
		case UdataFingerprint:
			if len(value) != len(info.Fingerprint) {
				return ErrMalformed
			}
			info.Fingerprint, info.Ours = Fingerprint(value), true
		case UdataOwner:
			info.Owner = string(value)
		}
		return err
	})
	if err != nil {
		return RuleInfo{}, fmt.Errorf("parse rule userdata: %w", err)
	}
	return info, nil
}

// CheckComment reports whether nft could print comment and read it back.
func CheckComment(comment string) error {
	if len(comment) > MaxComment {
		return fmt.Errorf("comment %.40q... has %d bytes: want at most %d", comment, len(comment), MaxComment)
	}
	if i := strings.IndexFunc(comment, func(r rune) bool { return r < ' ' || r == '"' || r == 0x7f }); i >= 0 {
		return fmt.Errorf("comment %q: unexpected %q at byte %d: quotes and control characters cannot be written in nft", comment, comment[i], i)
	}
	return nil
}

// AppendComment appends a comment as nft stores it, with a NUL at its end;
// nothing for an empty one.
func AppendComment(dst []byte, comment string) ([]byte, error) {
	if comment == "" {
		return dst, nil
	}
	if err := CheckComment(comment); err != nil {
		return dst, err
	}
	return AppendString(dst, udataComment, comment), nil
}

func AppendString(dst []byte, typ byte, s string) []byte {
	dst = append(dst, typ, byte(len(s)+1))
	dst = append(dst, s...)
	return append(dst, 0)
}

func ParseComment(value []byte) (string, error) {
	if len(value) == 0 || value[len(value)-1] != 0 {
		return "", ErrMalformed
	}
	return string(value[:len(value)-1]), nil
}

// AppendUint32 appends the length and value of a record that holds a number,
// which nft stores in the machine's byte order.
func AppendUint32(dst []byte, v uint32) []byte {
	dst = append(dst, 4)
	return binary.NativeEndian.AppendUint32(dst, v)
}

func ParseUint32(value []byte) (uint32, bool) {
	if len(value) != 4 {
		return 0, false
	}
	return binary.NativeEndian.Uint32(value), true
}

// EachRecord calls f for each record of b.
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
