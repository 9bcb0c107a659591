package datatype

import (
	"fmt"
	"strings"
)

// Order is a byte order of nft's set userdata (enum byteorder).
type Order uint32

// The byte orders.
const (
	// NoOrder is for verdicts, concatenations and some types of a single byte.
	NoOrder Order = 0
	// HostEndian is the machine's byte order.
	HostEndian Order = 1
	// BigEndian is network byte order.
	BigEndian Order = 2
)

type kind uint8

const (
	kindInteger kind = iota // a number or symbol
	kindVerdict
	kindIPv4
	kindIPv6
	kindEther
	kindLinkLayer
	kindString
	kindIfName
	kindTime
	kindClassID
	kindLabel
	kindDate
	kindHour
)

// Symbol is a name for a value.
type Symbol struct {
	Name  string
	Value uint64
}

// Type is a basic datatype. Types are compared by pointer and never change.
type Type struct {
	// in "type NAME" declarations
	Name string
	Desc string
	// NFTA_SET_KEY_TYPE (enum datatypes)
	ID uint32
	// 0 if it depends on the expression (verdict, bitmask, integer, string, ll_addr)
	Bits uint32
	// of packed values
	Order Order
	// flags, which can be joined by |
	Bitmask bool
	// printed by Format, one per value; Parse accepts more for inet_service, inet_proto, uid and
	// gid; do not modify
	Symbols []Symbol

	kind kind
	// for a value without a name; empty means decimal
	format string
}

// Len returns the packed bytes, or 0 if they vary.
func (t *Type) Len() int { return int(t.Bits+7) / 8 }

// String returns the type's name.
func (t *Type) String() string { return t.Name }

// Lookup returns a type that nft accepts in set declarations, unlike hour.
func Lookup(name string) (*Type, bool) {
	for _, t := range declarable {
		if t.Name == name {
			return t, true
		}
	}
	return nil, false
}

// ByID returns the type with nft's number.
func ByID(id uint32) (*Type, bool) {
	for _, list := range [][]*Type{declarable[:], undeclarable[:]} {
		for _, t := range list {
			if t.ID == id {
				return t, true
			}
		}
	}
	return nil, false
}

// Parse packs a constant, symbol, or flags joined by | into Len bytes. Without a width, a string
// has the bytes of the text, an integer or link layer address as few as possible.
func (t *Type) Parse(text string) ([]byte, error) {
	n := t.Len()
	if n == 0 {
		n = len(text) + 4
	}
	return t.AppendParse(make([]byte, 0, n), text)
}

// AppendParse appends the result of Parse to dst, unchanged on errors.
func (t *Type) AppendParse(dst []byte, text string) ([]byte, error) {
	// a table of functions would move dst to the heap
	switch t.kind {
	case kindIPv4:
		return appendIPv4(dst, text)
	case kindIPv6:
		return appendIPv6(dst, text)
	case kindVerdict:
		return appendVerdict(dst, text)
	case kindEther:
		return appendEther(dst, text)
	case kindLinkLayer:
		return appendLinkLayer(dst, text)
	case kindString:
		return appendString(dst, text)
	case kindIfName:
		return appendIfName(dst, text)
	case kindTime:
		return t.appendTime(dst, text)
	case kindClassID:
		return t.appendClassID(dst, text)
	case kindLabel:
		return t.appendLabel(dst, text)
	case kindDate:
		return t.appendDate(dst, text)
	case kindHour:
		return t.appendHour(dst, text)
	default:
		return t.appendInteger(dst, text)
	}
}

// Format prints like `nft list`, invalid values in hexadecimal.
func (t *Type) Format(b []byte) string {
	if n := t.Len(); n != 0 && len(b) != n || len(b) == 0 && t.kind != kindString {
		return rawHex(b)
	}
	return formats[t.kind](t, b)
}

var formats = [...]func(t *Type, b []byte) string{
	kindInteger:   (*Type).formatInteger,
	kindVerdict:   formatVerdict,
	kindIPv4:      formatIP,
	kindIPv6:      formatIP,
	kindEther:     formatEther,
	kindLinkLayer: formatEther,
	kindString:    formatString,
	kindIfName:    formatIfName,
	kindTime:      (*Type).formatTime,
	kindClassID:   (*Type).formatClassID,
	kindLabel:     (*Type).formatLabel,
	kindDate:      (*Type).formatDate,
	kindHour:      (*Type).formatHour,
}

func rawHex(b []byte) string { return fmt.Sprintf("0x%x", b) }

func (t *Type) symbolValue(name string) (uint64, bool) {
	for _, table := range [][]Symbol{t.Symbols, symbols[t.Name], symbols[t.Name+"_alias"]} {
		if v, ok := lookupName(table, name); ok {
			return v, true
		}
	}
	return 0, false
}

func lookupName(table []Symbol, name string) (uint64, bool) {
	for i := range table {
		if table[i].Name == name {
			return table[i].Value, true
		}
	}
	return 0, false
}

func lookupValue(table []Symbol, value uint64) (string, bool) {
	for i := range table {
		if table[i].Value == value {
			return table[i].Name, true
		}
	}
	return "", false
}

func (t *Type) expected() string {
	switch {
	case t == InetService:
		return "a port from 0 to 65535 or a service name such as http"
	case t == InetProto:
		return "a number from 0 to 255 or a protocol name such as tcp, udp or sctp"
	case t.numericOnly() != "":
		return t.numericOnly()
	case len(t.Symbols) == 0:
		return "a number"
	case len(t.Symbols) > 12:
		return fmt.Sprintf("a number or a name such as %s or %s", t.Symbols[0].Name, t.Symbols[1].Name)
	default:
		names := make([]string, 0, len(t.Symbols))
		for _, s := range t.Symbols {
			names = append(names, s.Name)
		}
		return "a number or one of " + strings.Join(names, ", ")
	}
}

// numericOnly describes the numbers that the type wants instead of names; it is "" for other types.
func (t *Type) numericOnly() string {
	switch t {
	case UID, GID:
		return "a number (names are known only for the users and groups that every Debian system has)"
	case IfIndex:
		return "an interface number, because the index of a name is the machine's (declare the set with type ifname, and look up iifname or oifname)"
	case Realm, DevGroup:
		return "a number (names of the machine's own tables are not read)"
	case CGroupV2:
		return "a number (paths are not looked up: give the inode number of the cgroup's directory, which \"stat -c %i\" prints)"
	default:
		return ""
	}
}
