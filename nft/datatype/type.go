package datatype

import (
	"fmt"
	"strings"
)

// Order is the byte order of a datatype's values. The numbers are those that
// nft stores in a set's userdata (enum byteorder).
type Order uint32

// The byte orders.
const (
	// NoOrder is for types of one byte, for which nft gives none.
	NoOrder Order = 0
	// HostEndian is the machine's own order.
	HostEndian Order = 1
	// BigEndian is network byte order.
	BigEndian Order = 2
)

// kind selects how the constants of a type are written.
type kind uint8

const (
	kindInteger kind = iota // a number or one of the type's symbols
	kindVerdict
	kindIPv4
	kindIPv6
	kindEther
	kindLinkLayer
	kindString
	kindIfName
	kindTime
	kindClassID
	kindService
	kindLabel
	kindDate
	kindHour
)

// Symbol is a name of one value of a type.
type Symbol struct {
	Name  string
	Value uint64
}

// Type is a basic datatype. Types are the package's variables; they are
// compared by pointer and never change.
type Type struct {
	// Name is what nft calls the type in "type NAME" declarations.
	Name string
	// Desc says in words what its values are, for error messages.
	Desc string
	// ID is nft's number for the type (NFTA_SET_KEY_TYPE, enum datatypes).
	ID uint32
	// Bits is the width of a value; 0 for types whose width depends on the
	// expression (verdict, bitmask, integer, string, ll_addr).
	Bits uint32
	// Order is the byte order of packed values.
	Order Order
	// Bitmask is true where values are sets of flags that can be joined by |.
	Bitmask bool
	// Symbols are the names of values. Where a value has several names the
	// first is the one that nft prints. Do not modify.
	Symbols []Symbol

	kind kind
	// format prints a value that has no name; empty means decimal.
	format string
}

// Len returns the width of a packed value in bytes, 0 where it varies.
func (t *Type) Len() int { return int(t.Bits+7) / 8 }

// String returns the type's name.
func (t *Type) String() string { return t.Name }

// Lookup returns the type that nft calls name in set declarations, such as
// ipv4_addr or inet_service.
func Lookup(name string) (*Type, bool) {
	for _, t := range declarable {
		if t.Name == name {
			return t, true
		}
	}
	return nil, false
}

// ByID returns the type with nft's number id.
func ByID(id uint32) (*Type, bool) {
	for _, t := range declarable {
		if t.ID == id {
			return t, true
		}
	}
	for _, t := range undeclarable {
		if t.ID == id {
			return t, true
		}
	}
	return nil, false
}

// Names returns the names that Lookup knows, in order of their numbers.
func Names() []string {
	names := make([]string, len(declarable))
	for i, t := range declarable {
		names[i] = t.Name
	}
	return names
}

// Parse packs one constant into the type's byte order: a literal, a symbol
// such as tcp, established or ssh, or flags joined by | where the type is a
// bitmask. The result has Len bytes without padding; of the types without a
// width, strings have as many bytes as the text, integers and link layer
// addresses as few as hold the value.
func (t *Type) Parse(text string) ([]byte, error) {
	n := t.Len()
	if n == 0 {
		n = len(text) + 4
	}
	return t.AppendParse(make([]byte, 0, n), text)
}

// AppendParse is Parse into the end of dst, which it leaves alone on errors.
func (t *Type) AppendParse(dst []byte, text string) ([]byte, error) {
	switch t.kind {
	case kindIPv4:
		return appendIPv4(dst, text)
	case kindIPv6:
		return appendIPv6(dst, text)
	case kindService, kindInteger:
		return t.appendInteger(dst, text)
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
		return dst, fmt.Errorf("parse %s: the type has no constants", t.Name)
	}
}

// Format returns the constant in b, which is packed as Parse does it, in the
// words of `nft list`. Bytes that are no value of the type come out as a
// hexadecimal number.
func (t *Type) Format(b []byte) string {
	if n := t.Len(); n != 0 && len(b) != n || len(b) == 0 && t.kind != kindString {
		return rawHex(b)
	}
	switch t.kind {
	case kindIPv4:
		return formatIPv4(b)
	case kindIPv6:
		return formatIPv6(b)
	case kindService, kindInteger:
		return t.formatInteger(b)
	case kindVerdict:
		return formatVerdict(b)
	case kindEther, kindLinkLayer:
		return formatEther(b)
	case kindString:
		return formatString(b)
	case kindIfName:
		return formatIfName(b)
	case kindTime:
		return t.formatTime(b)
	case kindClassID:
		return t.formatClassID(b)
	case kindLabel:
		return t.formatLabel(b)
	case kindDate:
		return t.formatDate(b)
	case kindHour:
		return t.formatHour(b)
	default:
		return rawHex(b)
	}
}

// rawHex formats bytes that no type explains.
func rawHex(b []byte) string { return fmt.Sprintf("0x%x", b) }

// symbolValue returns the value of a name.
func (t *Type) symbolValue(name string) (uint64, bool) {
	if t.kind == kindService {
		return servicePort(name)
	}
	for i := range t.Symbols {
		if t.Symbols[i].Name == name {
			return t.Symbols[i].Value, true
		}
	}
	switch t {
	case InetProto:
		return protocolAlias(name)
	case UID:
		return lookupName(users[:], name)
	case GID:
		return lookupName(groups[:], name)
	default:
		return 0, false
	}
}

// lookupName returns the value of a name in a table.
func lookupName(table []Symbol, name string) (uint64, bool) {
	for i := range table {
		if table[i].Name == name {
			return table[i].Value, true
		}
	}
	return 0, false
}

// symbolName returns the name that nft prints for a value.
func (t *Type) symbolName(value uint64) (string, bool) {
	for i := range t.Symbols {
		if t.Symbols[i].Value == value {
			return t.Symbols[i].Name, true
		}
	}
	return "", false
}

// expected says what a constant of the type looks like.
func (t *Type) expected() string {
	switch {
	case t.kind == kindService:
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

// numericOnly explains types whose names depend on the machine.
func (t *Type) numericOnly() string {
	switch t {
	case UID, GID:
		return "a number (of users and groups only those that every Debian system has are known by name)"
	case IfIndex:
		return "an interface number (match the name with ifname types such as iifname)"
	case Realm, DevGroup:
		return "a number (names of the machine's own tables are not read)"
	case CGroupV2:
		return "a number (paths are not looked up: give what \"stat -c %i\" says of the cgroup's directory)"
	default:
		return ""
	}
}
