package kernel

import (
	"time"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/userdata"
)

// Table is one of weft's tables in the kernel.
type Table struct {
	ID      nft.TableID
	Comment string
	// Owned means created or adopted by the Conn, even without the kernel's protection.
	Owned   bool
	Dormant bool
	// Objects and Flowtables are in unspecified order.
	Objects    []*object.Object
	Flowtables []*object.Flowtable
	// Chains are in order of creation.
	Chains []Chain
	// Anonymous sets are not included.
	Sets []Set
}

// Chain is a chain and its rules, in order.
type Chain struct {
	Decl  *object.Chain
	Rules []Rule
}

// Rule is a rule in the kernel; Info.Ours is false for foreign rules.
type Rule struct {
	Handle *Handle
	Info   userdata.RuleInfo
	// Writes are the elements that the rule adds to maps for matching packets.
	Writes []compile.Write
}

// Set is a named set or map and its elements.
type Set struct {
	// Decl comes from [set.Set.Complete].
	Decl *set.Set
	// Elements are ordered by key in interval sets without concatenations. Timeout is the whole
	// timeout.
	Elements []set.Element
}

// Stats counts the work of a commit.
type Stats struct {
	// The size of the batch, with begin and end.
	Messages int
	Bytes    int
	Elements int
	// Retries counts repeated sends because another process was first.
	Retries int
	// Kernel is processor time, retries included. Other writers of nftables wait in this time.
	Kernel time.Duration
}

// Add returns the sum of two batches.
func (s Stats) Add(o Stats) Stats {
	return Stats{
		Messages: s.Messages + o.Messages, Bytes: s.Bytes + o.Bytes, Elements: s.Elements + o.Elements,
		Retries: s.Retries + o.Retries, Kernel: s.Kernel + o.Kernel,
	}
}
