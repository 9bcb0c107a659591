package desired

// Work counts the effort of the state since merge.New, for tests of costs.
type Work struct {
	// Keys counts examined elements, Rules examined rules, Objects chains and sets, also for a
	// Scope or a Record.
	Keys, Rules, Objects uint64
}
