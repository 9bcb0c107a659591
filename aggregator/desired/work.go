package desired

// Work counts the effort since merge.New, for tests.
type Work struct {
	// Objects counts parts, also for a Scope or a Record, and evaluated prices.
	Keys, Rules, Objects uint64
}
