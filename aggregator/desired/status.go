package desired

import (
	"time"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	nftset "github.com/weft-proxy/weft/nft/set"
)

type TableStatus struct {
	Table   nft.TableID
	Comment string
	// Fragments are in merge order. The numbers include content without a fragment.
	Fragments           []Key
	Chains, Rules, Sets int
	Objects             int
	Dormant             bool
	// Elements counts elements in force; for a Reader without All, stated elements. Elements of
	// packets do not count. Shadowed counts hidden elements.
	Elements, Shadowed int
}

// Owned is a fragment with its rule, element or share of a part. Content without a fragment has the
// zero Key.
type Owned struct {
	Fragment Key
	Priority int32
	// Index is the position of Rule among the fragment's in the chain, from 1.
	Rule  *compile.Rule
	Index int
	// Element is the fragment's own.
	Element nftset.Element
}

type Status struct {
	Key      Key
	Priority int32
	Lifetime Lifetime
	Expires  time.Time
	// Session and Serial are of the last snapshot, or 0.
	Session, Serial uint64
	// Adopted fragments are from before a restart, not sent again.
	Adopted             bool
	Chains, Rules, Sets int
	Elements            int
	Objects             int
	// Shadowed counts map elements with a hidden value.
	Shadowed int
}
