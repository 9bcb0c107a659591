package policy

// commits counts changes, and wakes those who wait until a commit has them. It needs the
// lock of the state.
type commits struct {
	// arrived is the number of changes, taken those that a refresh found, answered those
	// that a commit has.
	arrived, taken, answered uint64
	waiters                  []waiter
}

// waiter waits until a number of changes is answered.
type waiter struct {
	arrived uint64
	done    chan struct{}
}

// arrive counts a change, which the backlog must count too.
func (c *commits) arrive() { c.arrived++ }

// take notes that a refresh found all changes.
func (c *commits) take() { c.taken = c.arrived }

// answer notes that a commit has what the last refresh found.
func (c *commits) answer() {
	c.answered = c.taken
	rest := c.waiters[:0]
	for _, w := range c.waiters {
		if w.arrived <= c.answered {
			close(w.done)
		} else {
			rest = append(rest, w)
		}
	}
	clear(c.waiters[len(rest):])
	c.waiters = rest
}

// wait returns a channel that is closed once all changes so far are answered.
func (c *commits) wait() <-chan struct{} {
	done := make(chan struct{})
	if c.arrived <= c.answered {
		close(done)
		return done
	}
	c.waiters = append(c.waiters, waiter{arrived: c.arrived, done: done})
	return done
}
