package desired

import (
	"github.com/weft-proxy/weft/conntrack"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// Purge names an affinity map in which there may be entries that packets have made
// and that no rule makes any more.
type Purge struct {
	Table nft.TableID
	// Decl is the declaration that the kernel has.
	Decl *nftset.Set
}

// Plan is an ordered list of kernel operations, with their consequences for
// flows and affinity maps.
type Plan struct {
	Ops []kernel.Op
	// Origin has for each op the update that it comes from, as an index into the
	// successful changes since the last Accept or Rollback. It is -1 in a
	// Diff, and for an op that no update has caused. No op has elements of two updates.
	Origin []int
	// Ahead is the number of the first Ops that are committed in a transaction of their own,
	// before the others. They add what nothing in force refers to: the chains that new
	// elements of maps lead to. A packet takes the generation of the rules when it enters a
	// hook, and that of the elements at each lookup (nft_do_chain in Linux): in one
	// transaction it could follow a new element to a chain that is still empty for it.
	Ahead  int
	Counts Counts
	// Stale are the UDP flows to flush after the commit, ordered by address
	// and port.
	Stale []conntrack.Change
	// Rerouted is true if packets may reach destinations with watched flows that they did not reach
	// before: compare all flows with Live after the commit.
	Rerouted bool
	// Deserted are those of Stale whose destination has no backend any more, in
	// the same order. After the commit the State does not know them.
	Deserted []conntrack.Change
	// Purges are the affinity maps to look into after the commit, ordered by table
	// and name: the last rule went that made some of their entries.
	Purges []Purge
}

// Counts says how much a plan changes. Tables, Chains, Sets and Objects count
// additions and deletions together. An object that is deleted and added again counts
// twice, a replaced element once as added and once as deleted. Content that is
// deleted together with its set or table does not count.
type Counts struct {
	Tables, Chains, Sets, Objects  int
	RulesAdded, RulesDeleted       int
	ElementsAdded, ElementsDeleted int
}
