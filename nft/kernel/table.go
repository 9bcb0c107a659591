package kernel

import (
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/userdata"
)

// Table is a table of weft's as the kernel holds it.
type Table struct {
	ID      nft.TableID
	Comment string
	// Owned is true where this Conn may change the table: it created or
	// claimed it.
	Owned bool
	// Dormant is true where the base chains are not on their hooks.
	Dormant bool
	// Objects and Flowtables are in no particular order.
	Objects    []*object.Object
	Flowtables []*object.Flowtable
	// Chains are in the kernel's order, which is that of their creation.
	Chains []Chain
	// Sets are the named sets and maps; anonymous ones belong to their rules.
	Sets []Set
}

// Chain is a chain and its rules, in order.
type Chain struct {
	Decl  *object.Chain
	Rules []Rule
}

// Rule is a rule of the kernel's. Info.Ours is false for a rule that weft did
// not write.
type Rule struct {
	Handle *Handle
	Info   userdata.RuleInfo
	// Writes are the entries that packets make in maps by running the rule: of
	// its expressions this alone is read.
	Writes []compile.Write
}

// Set is a named set or map and its elements.
type Set struct {
	// Decl is rebuilt from the kernel's attributes and the userdata, as far as
	// these tell: see [compile.Set.Complete].
	Decl *set.Set
	// Elements are in no particular order; those of interval sets that are not
	// concatenations are in the order of their keys. An element with a timeout
	// of its own has it in Timeout, whatever is left of it.
	Elements []set.Element
}

// Stats says what a commit took.
type Stats struct {
	// Messages and Bytes count the batch as it was sent, with its begin and end.
	Messages int
	Bytes    int
	// Elements counts added and deleted elements.
	Elements int
	// Retries counts how often another writer was faster (only on kernels
	// without table ownership).
	Retries int
}
