package aggregator

// Revision returns the number of the last commit.
func (a *Aggregator) Revision() uint64 { return a.statuses.Revision.Load() }

// Remembered returns of how many fragments the session knows the declarations. Only the
// goroutine that pushes may call it.
func (s *Session) Remembered() int {
	s.forget()
	return len(s.declared)
}
