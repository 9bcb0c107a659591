package desired

// Work counts what the state has looked at since New. Tests use it to prove that an
// update costs what it changes.
type Work struct {
	// Keys counts elements examined by Apply, Plan and Rollback; Rules counts
	// rules examined; Objects counts chains and sets, those that a Scope or a Record
	// is made of included.
	Keys, Rules, Objects uint64
}
