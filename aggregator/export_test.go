package aggregator

// Revision returns the number of the last commit.
func (a *Aggregator) Revision() uint64 { return a.statuses.revision.Load() }
