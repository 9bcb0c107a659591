package kernel

import (
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
)

// Op is one change of the ruleset; a batch executes ops in order. Objects are added after the
// objects they refer to, and deleted before them. Ops are values, not pointers. Their Chain, Rule,
// Set, Object, Flowtable, and the Handle of a DeleteRule must not be nil.
type Op interface {
	table() nft.TableID
}

// AddTable creates a table with weft's mark. For a table of the connection it sets only Dormant.
type AddTable struct {
	Table   nft.TableID
	Comment string
	// Dormant is NFT_TABLE_F_DORMANT.
	Dormant bool
}

// DeleteTable removes a table with its contents.
type DeleteTable struct{ Table nft.TableID }

// AddChain creates a chain, or changes a base chain's policy. An existing regular chain is EEXIST.
type AddChain struct {
	Table nft.TableID
	Chain *object.Chain
}

// DeleteChain removes an empty, unused chain.
type DeleteChain struct {
	Table nft.TableID
	Name  string
}

// AddRule adds a rule after another one, or at the start of the chain if After is nil.
type AddRule struct {
	Table nft.TableID
	Chain string
	Rule  *compile.Rule
	// Owner is the rule's publisher, stored in userdata.
	Owner string
	// After is in the kernel or earlier in the batch.
	After *Handle
	// Handle, if not nil, is set by a commit.
	Handle *Handle
}

// DeleteRule removes the rule with a handle.
type DeleteRule struct {
	Table  nft.TableID
	Chain  string
	Handle *Handle
}

// Handle is the handle of a rule.
type Handle struct {
	// N is NFTA_RULE_HANDLE; 0 until committed.
	N uint64
}

// AddSet creates a set or map. An equal one may exist.
type AddSet struct {
	Table nft.TableID
	Set   *set.Set
}

// DeleteSet removes an unused set or map.
type DeleteSet struct {
	Table nft.TableID
	Name  string
}

// FlushSet removes all elements of a set or map.
type FlushSet struct {
	Table nft.TableID
	Name  string
}

// AddElements adds elements; existing ones must have the same data.
type AddElements struct {
	Table    nft.TableID
	Set      *set.Set
	Elements []set.Element
	// Renew restarts existing elements with the remaining time in State, or the whole timeout.
	// Before Linux 6.12 this deletes and adds the element, so its counters begin again.
	Renew bool
	// First says that the set is empty before. With ranges, the first element must have the
	// smallest key; nft's end at key 0 is added unless that key is 0.
	First bool
}

// DeleteElements removes elements by Key and KeyEnd. A missing element is ENOENT, except in a set
// with flag timeout.
type DeleteElements struct {
	Table    nft.TableID
	Set      *set.Set
	Elements []set.Element
}

// AddObject creates a named object; an existing one is EEXIST.
type AddObject struct {
	Table  nft.TableID
	Object *object.Object
}

// DeleteObject removes an unused object.
type DeleteObject struct {
	Table nft.TableID
	Ref   object.Ref
}

// AddFlowtable creates a flowtable; an existing one is EEXIST.
type AddFlowtable struct {
	Table     nft.TableID
	Flowtable *object.Flowtable
}

// DeleteFlowtable removes an unused flowtable.
type DeleteFlowtable struct {
	Table nft.TableID
	Name  string
}

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
func (o AddObject) table() nft.TableID       { return o.Table }
func (o DeleteObject) table() nft.TableID    { return o.Table }
func (o AddFlowtable) table() nft.TableID    { return o.Table }
func (o DeleteFlowtable) table() nft.TableID { return o.Table }

// TableOf returns an op's table.
func TableOf(op Op) nft.TableID { return op.table() }
