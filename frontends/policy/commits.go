package policy

// commits wakes the waiters for a commit. The lock of the state guards it.
type commits struct {
	// Numbers of changes: that arrived, that a refresh found, and that a commit has.
	arrived, taken, answered uint64
	waiters                  []waiter
}

type waiter struct {
	arrived uint64
	done    chan struct{}
}

func (c *commits) arrive() { c.arrived++ }

func (c *commits) take() { c.taken = c.arrived }

// answer notes that a commit has the changes of the last refresh.
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

// wait returns a channel, closed once all changes so far are answered.
func (c *commits) wait() <-chan struct{} {
	done := make(chan struct{})
	if c.arrived <= c.answered {
		close(done)
		return done
	}
	c.waiters = append(c.waiters, waiter{arrived: c.arrived, done: done})
	return done
}
