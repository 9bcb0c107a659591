package desired

// Work counts the effort since merge.New, for tests.
type Work struct {
	// Objects counts chains and sets, also for a Scope or a Record.
	Keys, Rules, Objects uint64
}
