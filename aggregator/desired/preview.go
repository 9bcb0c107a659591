package desired

import (
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// Preview is a Plan with what is needed to describe it after a Rollback.
type Preview struct {
	*Plan
	// Before has, by the index of the op, what the kernel holds of the rule or set
	// that the op deletes or flushes, and which rules are added at the head.
	Before map[int]Before
	// Shadows are the map elements with several values of which one is a
	// previewed fragment's, in no order.
	Shadows []Shadow
	// Paths has the base chains of the tables of the previewed fragments, the most
	// expensive first. Of each ChainTime is set, and Time is not.
	Paths []Path
}

// Before is what the kernel holds before an op: the rule that is deleted, or the set
// that is deleted or flushed. For a rule that is added, only Head is set.
type Before struct {
	Rule *compile.Rule
	Set  *nftset.Set
	// Head is true for a rule that is added in front of the rules of its chain.
	Head bool
	// Staged is true for a set or table that another update brings to the kernel, and that
	// is in no committed state.
	Staged bool
}

// Shadow is a map element of which two fragments have different values.
type Shadow struct {
	Table nft.TableID
	Decl  *nftset.Set
	// Winner's value is in force. It is the zero Key if no fragment owns it.
	Winner, Hidden Key
	// Element is the winner's, HiddenElement the other's.
	Element, HiddenElement nftset.Element
}
