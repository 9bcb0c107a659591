package aggregator

// Revision returns the number of the last commit.
func (a *Aggregator) Revision() uint64 { return a.statuses.Revision.Load() }

// Remembered returns the number of fragments with declarations known to the session. Only the
// goroutine that pushes may call it.
func (s *Session) Remembered() int {
	s.forget()
	return len(s.declared)
}
