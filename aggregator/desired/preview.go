package desired

import (
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// Preview is a Plan with its description, also after a Rollback.
type Preview struct {
	*Plan
	// Before has by index of an op the rule or set that it deletes or flushes, and rules added at
	// the head.
	Before map[int]Before
	// Shadows are map elements with several values, one previewed, in no order.
	Shadows []Shadow
	// Paths has the base chains of the tables, the most expensive first, without Time.
	Paths []Path
}

// Before is the kernel's rule or set before an op.
type Before struct {
	Rule *compile.Rule
	Set  *nftset.Set
	// Head is true for a rule that is added before its chain's rules.
	Head bool
	// Staged sets and tables of another update are in no committed state.
	Staged bool
}

// Shadow is a map element with different values of two fragments.
type Shadow struct {
	Table nft.TableID
	Decl  *nftset.Set
	// Winner's value is in force. Without an owner it is the zero Key.
	Winner, Hidden         Key
	Element, HiddenElement nftset.Element
}
