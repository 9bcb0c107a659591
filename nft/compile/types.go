package compile

import (
	"time"

	"github.com/weft-proxy/weft/nft"
)

// Rule is a compiled rule: the expressions that the kernel runs, the
// anonymous sets that they use, and what the rule refers to.
//
// A Rule is immutable and independent of the position that it takes in a
// chain, so it can be shared between goroutines and committed any number of
// times.
type Rule struct {
	Family nft.Family
	// Text is the rule in canonical form, without its comment.
	Text    string
	Comment string
	// Exprs are the expressions in kernel order. A Lookup or Dynset on the
	// rule's anonymous set number i (from 0) carries SetID i+1 and the name
	// "__set%d" or "__map%d"; one on a named set carries SetID 0.
	Exprs []Expr
	// Anonymous are the rule's anonymous sets and maps, in SetID order.
	Anonymous []AnonymousSet
	// Chains are the targets of jump and goto, in the rule itself and in its
	// anonymous verdict maps, sorted, without repeats.
	Chains []string
	// Sets are the names of the named sets and maps that the rule uses,
	// sorted, without repeats.
	Sets []string
	// Objects are the named objects that the rule refers to, Flowtables the
	// flowtables; both sorted, without repeats.
	Objects    []ObjectRef
	Flowtables []string
	// Writes are the entries that packets make in maps by running the rule,
	// without repeats.
	Writes []Write
	// Fingerprint identifies the rule's content (family, expressions,
	// anonymous sets, comment): equal fingerprints mean that the kernel's rule
	// can stay as it is, with its handle and counters. It is stored in the
	// rule's userdata (see UserData) and so must stay the same across
	// versions of weft as long as the compiled bytes do.
	Fingerprint Fingerprint

	// encoded is what Encode copies.
	encoded encoding
}

// Fingerprint is the first half of a SHA-256 over a compiled rule.
type Fingerprint [16]byte

// AnonymousSet is a set or map that lives and dies with its rule.
type AnonymousSet struct {
	Set      *Set
	Elements []Element
}

// Chain is a compiled chain declaration.
type Chain struct {
	Name string
	// Base is nil for a regular chain.
	Base    *Base
	Comment string
}

// Base is what makes a chain a base chain. It is comparable.
type Base struct {
	// Type is filter, nat or route.
	Type string
	// Hook is the kernel's hook number in the family of the table.
	Hook     uint32
	Priority int32
	// Drop is true for policy drop.
	Drop   bool
	Device string
	// Devices are several, in place of Device.
	Devices Devices
	// Offload is true where the rules go to the device's hardware.
	Offload bool
}

// Set is a compiled declaration of a set or map, named or anonymous: what
// NEWSET carries, and how elements are packed.
type Set struct {
	Name string
	// Key is the type of the key, Data that of a map's data (zero in sets).
	Key  Type
	Data Type
	// Map is true for maps and verdict maps, Verdict for verdict maps.
	Map     bool
	Verdict bool
	// Object is the kind of the objects that a map of objects names; such a
	// Map has no Data type, and the Data of its elements are names.
	Object nft.ObjectKind
	// DataInterval is true where a map's data are ranges ("interval" before
	// the type of the data); Data.Len then counts both ends.
	DataInterval bool
	// Flags are the kernel's NFT_SET_* bits, NFT_SET_MAP (or
	// NFT_SET_OBJECT) included;
	// NFT_SET_ANONYMOUS and NFT_SET_CONSTANT only in anonymous sets.
	Flags      uint32
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
	parts []part
}

// Element is one packed element. Strings, not byte slices: they are map keys
// and never change.
type Element struct {
	// Key is the packed key, in network or host byte order as its type wants.
	// It is empty for the catch-all element "*".
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
	// State is what few elements have, in canonical words: what is left of the
	// timeout, and the statements that keep a state for the element. NewState makes
	// it, Expires and Stateful take it apart.
	State string
}
