package kernel

import (
	"time"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/userdata"
)

// Table is one of weft's tables with its contents in the kernel.
type Table struct {
	ID      nft.TableID
	Comment string
	// Owned is true if the Conn created or adopted the table and may change it, even without the
	// kernel's protection.
	Owned bool
	// Dormant is true if the base chains are detached from their hooks.
	Dormant bool
	// Objects and Flowtables are in unspecified order.
	Objects    []*object.Object
	Flowtables []*object.Flowtable
	// Chains are in the order of their creation.
	Chains []Chain
	// Sets are the named sets and maps. Anonymous sets belong to their rules.
	Sets []Set
}

// Chain is a chain and its rules, in order.
type Chain struct {
	Decl  *object.Chain
	Rules []Rule
}

// Rule is a rule in the kernel. Info.Ours is false for foreign rules.
type Rule struct {
	Handle *Handle
	Info   userdata.RuleInfo
	// Writes are the elements that the rule adds to maps for matching packets.
	Writes []compile.Write
}

// Set is a named set or map and its elements.
type Set struct {
	// Decl is reconstructed by [set.Set.Complete].
	Decl *set.Set
	// Elements of interval sets are ordered by key, except for concatenations; others are
	// unordered. Timeout is the whole timeout, not the remaining time.
	Elements []set.Element
}

// Stats counts the work of a commit.
type Stats struct {
	// Messages and Bytes are the size of the batch, with begin and end.
	Messages int
	Bytes    int
	// Elements is the number of added and deleted elements.
	Elements int
	// Retries is the number of repeated sends because another process was first.
	Retries int
	// Kernel is the kernel's processor time, retries included. All other writers of nftables wait
	// in this time.
	Kernel time.Duration
}

// Add returns the sum of two batches.
func (s Stats) Add(o Stats) Stats {
	return Stats{
		Messages: s.Messages + o.Messages, Bytes: s.Bytes + o.Bytes, Elements: s.Elements + o.Elements,
		Retries: s.Retries + o.Retries, Kernel: s.Kernel + o.Kernel,
	}
}
