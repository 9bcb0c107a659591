package desired

import (
	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	nftobject "github.com/weft-proxy/weft/nft/object"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// Merged is an immutable copy of a table's content.
type Merged struct {
	Status TableStatus
	// Sorted: Chains and Sets by name, Objects by kind and name.
	Chains  []MergedChain
	Sets    []MergedSet
	Objects []MergedObject
}

// MergedObject is a named object or a flowtable; the other is nil.
type MergedObject struct {
	Object    *nftobject.Object
	Flowtable *nftobject.Flowtable
	Fragments []Key
}

// MergedChain has its rules in the kernel's order.
type MergedChain struct {
	Decl *nftobject.Chain
	// Source is the first known declaration, or nil.
	Source    *nft.Chain
	Fragments []Key
	Rules     []MergedRule
}

// MergedRule has no text if it is adopted.
type MergedRule struct {
	Rule   *compile.Rule
	Owner  string
	Handle uint64
}

type MergedSet struct {
	Decl      *nftset.Set
	Source    *nft.Set
	Fragments []Key
	// Elements is nil if the reader did not ask for elements: see views.Merged.
	Elements *packed.View
}

// Detail says how much Merged returns.
type Detail int

// Each detail includes the earlier ones.
const (
	DetailObjects Detail = iota
	// DetailRules has chains with rules, and declarations of sets.
	DetailRules
	DetailElements
	// DetailPlanned has the rules as the last plan or preview will leave them, with known handles.
	DetailPlanned
)
