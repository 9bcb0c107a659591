package kernel

import (
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
)

// Op is one change of the ruleset. A batch is a list of ops, executed in order. Objects must be
// added after the objects they refer to, and deleted before them. Ops are values: Commit rejects a
// pointer such as *AddTable. Chain, Rule, Set, Object, Flowtable, and the Handle of a DeleteRule
// must not be nil. An errno is wrapped in a *BatchError.
type Op interface {
	table() nft.TableID
}

// AddTable creates a table with weft's mark. For a table of the connection it sets only Dormant and
// ignores Comment.
type AddTable struct {
	Table   nft.TableID
	Comment string
	// Dormant detaches the base chains from their hooks (NFT_TABLE_F_DORMANT).
	Dormant bool
}

// DeleteTable removes a table with its contents.
type DeleteTable struct{ Table nft.TableID }

// AddChain creates a chain, or changes the policy of a base chain. It fails with EEXIST if a
// regular chain of that name exists.
type AddChain struct {
	Table nft.TableID
	Chain *object.Chain
}

// DeleteChain removes an empty chain without references.
type DeleteChain struct {
	Table nft.TableID
	Name  string
}

// AddRule adds a rule after another one, or at the start of the chain if After is nil.
type AddRule struct {
	Table nft.TableID
	Chain string
	Rule  *compile.Rule
	// Owner is the caller's name for the rule's publisher, stored in userdata with the fingerprint.
	Owner string
	// After is the handle of the preceding rule, in the kernel or earlier in the batch.
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

// Handle holds the handle of a rule, zero until the rule is committed.
type Handle struct {
	// N is the kernel's handle (NFTA_RULE_HANDLE).
	N uint64
}

// AddSet creates a set or map. It has no effect if an equal one exists.
type AddSet struct {
	Table nft.TableID
	Set   *set.Set
}

// DeleteSet removes a set or map without references, and its elements.
type DeleteSet struct {
	Table nft.TableID
	Name  string
}

// FlushSet removes all elements of a set or map.
type FlushSet struct {
	Table nft.TableID
	Name  string
}

// AddElements adds elements. It ignores existing elements with the same data, and fails if the data
// differ.
type AddElements struct {
	Table    nft.TableID
	Set      *set.Set
	Elements []set.Element
	// Renew restarts the time of existing elements: the remaining time in State, or the whole
	// timeout. Before Linux 6.12 this deletes and adds the element, and its counters begin again.
	Renew bool
	// First says that the set is empty before. If it has ranges, the first of Elements has the
	// smallest key; nft's end at key 0 is added unless that key is 0.
	First bool
}

// DeleteElements removes elements by Key and KeyEnd. A missing element is ENOENT, except in a set
// with flag timeout, because it can have expired.
type DeleteElements struct {
	Table    nft.TableID
	Set      *set.Set
	Elements []set.Element
}

// AddObject creates a named object. It fails with EEXIST if it exists.
type AddObject struct {
	Table  nft.TableID
	Object *object.Object
}

// DeleteObject removes an object without references.
type DeleteObject struct {
	Table nft.TableID
	Ref   object.Ref
}

// AddFlowtable creates a flowtable. It fails with EEXIST if it exists.
type AddFlowtable struct {
	Table     nft.TableID
	Flowtable *object.Flowtable
}

// DeleteFlowtable removes a flowtable without references.
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

// TableOf returns the table that an op changes.
func TableOf(op Op) nft.TableID { return op.table() }
