package set

import (
	"time"

	"github.com/weft-proxy/weft/nft"
)

// Anonymous is a set or map that is created and deleted with its rule.
type Anonymous struct {
	Set      *Set
	Elements []Element
}

// Set is a compiled declaration of a set or map, named or anonymous: what
// NEWSET carries, and how elements are packed.
type Set struct {
	Name string
	// Key is the type of the key, Data that of a map's data (zero in sets).
	Key  Type
	Data Type
	// Map is true for all maps, those of verdicts and objects included. Verdict is true for
	// verdict maps.
	Map     bool
	Verdict bool
	// Object is the kind of the objects that a map of objects names; such a
	// Map has no Data type, and the Data of its elements are names.
	Object nft.ObjectKind
	// DataInterval is true if a map's data are ranges ("interval" before the type of the
	// data); Data.Len then counts both ends.
	DataInterval bool
	// Flags are the kernel's NFT_SET_* bits, NFT_SET_MAP (or
	// NFT_SET_OBJECT) included;
	// NFT_SET_ANONYMOUS and NFT_SET_CONSTANT only in anonymous sets.
	Flags uint32
	// Timeout, GCInterval and Size are as in nft.Set.
	Timeout    time.Duration
	GCInterval time.Duration
	Size       uint32
	// Memory is true for policy memory.
	Memory    bool
	AutoMerge bool
	Comment   string
	// Stateful are the statements that every new element gets, in nft's words.
	Stateful []string
	// UserData is what makes nft print the declaration as it was written
	// (byte orders, typeof expressions, comment), encoded as nft 1.0.6 does.
	UserData []byte
}

// MaxKey is the greatest size of a packed key or of data in bytes
// (NFT_DATA_VALUE_MAXLEN).
const MaxKey = 64

// Type is the type of a key or of data: one basic datatype or a
// concatenation of several.
type Type struct {
	// ID is nft's number for the datatype, or six bits for each part of a
	// concatenation (NFTA_SET_KEY_TYPE, NFTA_SET_DATA_TYPE).
	ID uint32
	// Len is the packed length in bytes; each part of a concatenation takes
	// a multiple of four.
	Len uint32
	// Fields are the unpadded lengths of the parts of a concatenation in
	// bytes, in order; nil for a basic type (NFTA_SET_DESC_CONCAT).
	Fields []uint32
	// Names are the datatypes of the parts, as nft names them.
	Names []string

	// parts are the parts as Pack needs them; nil in a Type that was put
	// together from the fields above.
	parts []Part
}

// Element is one packed element. Strings, not byte slices: they are map keys
// and never change.
type Element struct {
	// Key is the packed key. In sets with the interval flag all its numbers are big-endian; in
	// others they have the byte order of their type. Parts of a concatenation are padded to
	// four bytes. It is empty for the catch-all element "*".
	Key string
	// KeyEnd is the inclusive packed end of an interval, empty for a single
	// value of a set without the interval flag; in interval sets a single
	// value has KeyEnd == Key.
	KeyEnd string
	// Data is a map's packed data; for verdict maps it is a VerdictData,
	// for maps of objects a name.
	Data    string
	Timeout time.Duration
	Comment string
	// State is the remaining time and the statements of the element in one canonical text,
	// which most elements do not have. NewState makes it; Expires and Stateful return its
	// parts.
	State string
}
