package desired

import (
	"github.com/weft-proxy/weft/conntrack"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// Purge names an affinity map with possible entries that no rule makes.
type Purge struct {
	Table nft.TableID
	Decl  *nftset.Set
}

// Plan is an ordered list of kernel operations with their consequences.
type Plan struct {
	Ops []kernel.Op
	// Origin has for each op the index of the update among all since Accept or Rollback, -1 in a
	// Diff or without an update. No op has elements of two updates.
	Origin []int
	// Ahead is the number of leading Ops to commit in an earlier transaction: chains that new
	// elements lead to. A packet takes the generation of the rules when it enters a hook, but of
	// the elements at each lookup (nft_do_chain in Linux). In one transaction it could meet a chain
	// that is still empty for it.
	Ahead  int
	Counts Counts
	// Stale are the UDP flows to flush after the commit, by address and port.
	Stale []conntrack.Stale
	// Rerouted is true if packets may newly reach destinations with watched flows: compare all
	// flows with planner.Live after the commit.
	Rerouted bool
	// Deserted are the Stale destinations without a backend left. The State does not know them
	// after the commit.
	Deserted []conntrack.Stale
	// Purges are the affinity maps to search after the commit, by table and name.
	Purges []Purge
}

// Counts counts additions and deletions. A remade part counts twice; a replaced element is added
// and deleted. Content that goes with its set or table does not count.
type Counts struct {
	Tables, Chains, Sets, Objects  int
	RulesAdded, RulesDeleted       int
	ElementsAdded, ElementsDeleted int
}
