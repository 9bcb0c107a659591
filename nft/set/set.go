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

// Set is a compiled set or map, named or anonymous.
type Set struct {
	Name string
	Key  Type
	Data Type
	// Map includes verdict and object maps.
	Map     bool
	Verdict bool
	// Object is the kind of a map of objects. Such a Map has no Data type; its elements' Data are
	// names.
	Object nft.ObjectKind
	// DataInterval means that a map's data are ranges. Data.Len counts both ends.
	DataInterval bool
	// Flags are the kernel's NFT_SET_* bits, including NFT_SET_MAP or NFT_SET_OBJECT. All anonymous
	// sets but meters have NFT_SET_CONSTANT.
	Flags uint32
	// As in nft.Set.
	Timeout    time.Duration
	GCInterval time.Duration
	Size       uint32
	Memory     bool
	AutoMerge  bool
	Comment    string
	// Stateful are the statements of every new element.
	Stateful []string
	// UserData is encoded as by nft 1.0.6.
	UserData []byte
}

// MaxKey is the maximum size in bytes of a packed key or of data (NFT_DATA_VALUE_MAXLEN).
const MaxKey = 64

// Type is one basic datatype or a concatenation.
type Type struct {
	// ID is nft's number of the datatype, or six bits for each part (NFTA_SET_KEY_TYPE).
	ID uint32
	// Len is the packed length in bytes. Parts of a concatenation take multiples of four.
	Len uint32
	// Fields are the unpadded lengths in bytes of a concatenation's parts (NFTA_SET_DESC_CONCAT);
	// otherwise nil.
	Fields []uint32
	Names  []string

	// parts is nil in a Type made from the fields above.
	parts []Part
}

// Element is one packed element. Its strings serve as map keys and never change.
type Element struct {
	// Key is empty for the catch-all element "*". Numbers are big-endian in sets with the interval
	// flag, otherwise in the order of their type. Parts of a concatenation are padded to four
	// bytes.
	Key string
	// KeyEnd is the inclusive end of an interval. For a single value it equals Key in interval
	// sets, otherwise it is empty.
	KeyEnd string
	// Data is a VerdictData in verdict maps, a name in maps of objects.
	Data string
	// Timeout is 0 for the set's timeout.
	Timeout time.Duration
	Comment string
	// State has the remaining time and the statements, in the form of NewState.
	State string
}
