package model

// Snapshot is the whole state at one revision, sorted by name and immutable.
type Snapshot struct {
	// Revision is Stats.Revision, not a commit's revision.
	Revision     uint64
	Node         Node
	ServiceCIDRs Prefixes
	Services     []*Service
}
