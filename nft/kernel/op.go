package kernel

import (
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
)

// Op is one change of the ruleset. A batch is a list of them; all take effect
// at once, or none does. Ops are executed in order, so an object comes after
// what it needs and goes before what it needs.
type Op interface {
	// String is the change in nft's words, with a few of its elements at most.
	String() string
	// table is the table that the change is about.
	table() nft.TableID
}

// AddTable creates a table marked as weft's. Of one that this socket created or
// claimed before it changes whether it is dormant, and nothing else.
type AddTable struct {
	Table   nft.TableID
	Comment string
	// Dormant takes the table's base chains off their hooks (NFT_TABLE_F_DORMANT).
	Dormant bool
}

// DeleteTable removes a table with everything in it.
type DeleteTable struct{ Table nft.TableID }

// AddChain creates a chain; of an existing base chain it can change the policy.
type AddChain struct {
	Table nft.TableID
	Chain *object.Chain
}

// DeleteChain removes an empty chain that nothing refers to.
type DeleteChain struct {
	Table nft.TableID
	Name  string
}

// AddRule adds a rule after the rule that After names, or at the head of the
// chain where After is nil. The kernel's handle is in *Handle after a commit.
type AddRule struct {
	Table nft.TableID
	Chain string
	Rule  *compile.Rule
	// Owner is stored beside the fingerprint in the rule's userdata.
	Owner string
	// After is the handle of the rule before this one: that of a committed
	// rule, or of one that the same batch adds earlier.
	After *Handle
	// Handle is this rule's own; the batch fills it in.
	Handle *Handle
}

// DeleteRule removes the rule with a handle.
type DeleteRule struct {
	Table  nft.TableID
	Chain  string
	Handle *Handle
}

// Handle is the place of a rule's handle. It is zero until the batch that adds
// the rule is committed.
type Handle struct {
	// N is the kernel's handle (NFTA_RULE_HANDLE).
	N uint64
}

// AddSet creates a set or map.
type AddSet struct {
	Table nft.TableID
	Set   *set.Set
}

// DeleteSet removes a set or map that no rule uses, with its elements.
type DeleteSet struct {
	Table nft.TableID
	Name  string
}

// FlushSet removes all elements of a set or map.
type FlushSet struct {
	Table nft.TableID
	Name  string
}

// AddElements adds elements; it is an error if one exists with other data.
type AddElements struct {
	Table    nft.TableID
	Set      *set.Set
	Elements []set.Element
}

// DeleteElements removes elements by Key and KeyEnd; it is an error if one
// does not exist. In a set with flags timeout the element may have run out before:
// that is no error where the kernel can tell so (Linux 6.3), and ENOENT elsewhere.
type DeleteElements struct {
	Table    nft.TableID
	Set      *set.Set
	Elements []set.Element
}

// AddObject creates a named object.
type AddObject struct {
	Table  nft.TableID
	Object *object.Object
}

// DeleteObject removes an object that nothing refers to.
type DeleteObject struct {
	Table nft.TableID
	Ref   object.Ref
}

// AddFlowtable creates a flowtable.
type AddFlowtable struct {
	Table     nft.TableID
	Flowtable *object.Flowtable
}

// DeleteFlowtable removes a flowtable that no rule refers to.
type DeleteFlowtable struct {
	Table nft.TableID
	Name  string
}

func (o AddObject) table() nft.TableID       { return o.Table }
func (o DeleteObject) table() nft.TableID    { return o.Table }
func (o AddFlowtable) table() nft.TableID    { return o.Table }
func (o DeleteFlowtable) table() nft.TableID { return o.Table }
func (o AddTable) table() nft.TableID        { return o.Table }
func (o DeleteTable) table() nft.TableID     { return o.Table }
func (o AddChain) table() nft.TableID        { return o.Table }
func (o DeleteChain) table() nft.TableID     { return o.Table }
func (o AddRule) table() nft.TableID         { return o.Table }
func (o DeleteRule) table() nft.TableID      { return o.Table }
func (o AddSet) table() nft.TableID          { return o.Table }
func (o DeleteSet) table() nft.TableID       { return o.Table }
func (o FlushSet) table() nft.TableID        { return o.Table }
func (o AddElements) table() nft.TableID     { return o.Table }
func (o DeleteElements) table() nft.TableID  { return o.Table }

// TableOf returns the table that a change is about.
func TableOf(op Op) nft.TableID { return op.table() }
