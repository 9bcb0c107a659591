package desired

import (
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// Preview is a Plan with its description for use after a Rollback.
type Preview struct {
	*Plan
	// Before has by index the kernel's rule or set that the op deletes or flushes, and marks rules
	// that are added at the head.
	Before map[int]Before
	// Shadows are map elements with several values, one from a previewed fragment, in no order.
	Shadows []Shadow
	// Paths has the base chains of the fragments' tables, the most expensive first, without Time.
	Paths []Path
}

// Before is the kernel's rule or set before an op.
type Before struct {
	Rule *compile.Rule
	Set  *nftset.Set
	// Head is true for a rule that is added in front of its chain's rules.
	Head bool
	// Staged is true for a set or table of another update that is in no committed state.
	Staged bool
}

// Shadow is a map element of which two fragments have different values.
type Shadow struct {
	Table nft.TableID
	Decl  *nftset.Set
	// Winner's value is in force. It is the zero Key without an owner.
	Winner, Hidden Key
	// Element is the winner's, HiddenElement the other's.
	Element, HiddenElement nftset.Element
}
