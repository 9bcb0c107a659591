package desired

import (
	"time"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// TableStatus describes the content of a table, and the fragments that hold it.
type TableStatus struct {
	Table   nft.TableID
	Comment string
	// Fragments have something in the table, in merge order. Content without a
	// fragment is counted, but in none of them.
	Fragments           []Key
	Chains, Rules, Sets int
	// Objects counts named objects and flowtables.
	Objects int
	// Dormant says that the base chains are off their hooks.
	Dormant bool
	// Elements counts the elements in force, without those that packets put in
	// before a restart. Shadowed counts the elements that another fragment's value
	// hides.
	Elements, Shadowed int
}

// Owned is a fragment that has a part in an object. It says which part.
type Owned struct {
	// Fragment is the zero Key if no fragment owns the object.
	Fragment Key
	Priority int32
	// Rule is set if the object is a rule. Index is its position among the
	// fragment's rules in the chain, from 1.
	Rule  *compile.Rule
	Index int
	// Element is set if the object is an element: it is the fragment's own, with its
	// own value.
	Element nftset.Element
}

// Status says how much a fragment holds.
type Status struct {
	Key      Key
	Priority int32
	Lifetime Lifetime
	// Expires is when the fragment is to be withdrawn; zero means never.
	Expires time.Time
	// Session and Serial are those of the last snapshot. They are 0 if it came from
	// no session, and for an adopted fragment.
	Session, Serial uint64
	// Adopted is true for a fragment that is known only from before a restart:
	// its publisher has not sent it again.
	Adopted             bool
	Chains, Rules, Sets int
	Elements            int
	// Objects counts named objects and flowtables.
	Objects int
	// Shadowed counts map elements whose value another fragment's hides.
	Shadowed int
}
