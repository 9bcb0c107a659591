package desired

import (
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// Preview is a Plan with its description, valid also after a Rollback.
type Preview struct {
	*Plan
	// Before has by index in Ops the rule or set that the op deletes or flushes, and marks rules
	// added at the head.
	Before map[int]Before
	// Shadows are map elements with different values, one from a previewed fragment, in no order.
	Shadows []Shadow
	// Paths has the most expensive base chains of the fragments' tables, in falling order, without
	// Time.
	Paths []Path
}

// Before is the kernel's rule or set before an op.
type Before struct {
	Rule *compile.Rule
	Set  *nftset.Set
	// Head is true for a rule that is added before its chain's rules.
	Head bool
	// Staged marks a set or table that staging (planner.Stage) brought: no committed state has it.
	Staged bool
}

// Shadow is a map element with different values of two fragments.
type Shadow struct {
	Table nft.TableID
	Decl  *nftset.Set
	// Winner's value is in force. Content without a fragment has the zero Key.
	Winner, Hidden         Key
	Element, HiddenElement nftset.Element
}
