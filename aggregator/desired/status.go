package desired

import (
	"time"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// TableStatus describes the content of a table, and its fragments.
type TableStatus struct {
	Table   nft.TableID
	Comment string
	// Fragments are in merge order. Content without a fragment counts too.
	Fragments           []Key
	Chains, Rules, Sets int
	// Objects counts named objects and flowtables.
	Objects int
	// Dormant says that the base chains are off their hooks.
	Dormant bool
	// Elements counts the elements in force, without those of packets from before a restart.
	// Shadowed counts hidden elements.
	Elements, Shadowed int
}

// Owned is a fragment that has a part in an object.
type Owned struct {
	// Fragment is the zero Key without an owner.
	Fragment Key
	Priority int32
	// Rule is set for a rule. Index is its position among the fragment's rules in the chain, from
	// 1.
	Rule  *compile.Rule
	Index int
	// Element is the fragment's own element, if the object is one.
	Element nftset.Element
}

// Status says how much a fragment holds.
type Status struct {
	Key      Key
	Priority int32
	Lifetime Lifetime
	// Expires is when the fragment is to be withdrawn; zero means never.
	Expires time.Time
	// Session and Serial are those of the last snapshot. They are 0 without a session, and for an
	// adopted fragment.
	Session, Serial uint64
	// Adopted fragments are from before a restart, and were not sent again.
	Adopted             bool
	Chains, Rules, Sets int
	Elements            int
	// Objects counts named objects and flowtables.
	Objects int
	// Shadowed counts map elements with a value that another fragment hides.
	Shadowed int
}
