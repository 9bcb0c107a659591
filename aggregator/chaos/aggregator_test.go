package chaos

import (
	"syscall"
	"time"
)

// grace is how long session fragments wait for their publisher after a restart
// of the aggregator.
const grace = 2 * time.Second

// launch starts the aggregator and waits until it commits.
func (c *conductor) launch() {
	c.t.Helper()
	cfg := daemonConfig{Socket: c.socket, StateDir: c.dir + "/state", NoOwner: !c.owned, Grace: grace}
	if c.seed%2 == 0 {
		cfg.Rate = 20
	}
	var err error
	if c.daemon, err = start(c.node, roleDaemon, cfg, c.log("aggregator"), c.events); err != nil {
		c.fatal("%v", err)
	}
	c.ready = false
	c.await("the aggregator commits", func() bool {
		if c.daemon == nil {
			c.fatal("the aggregator ended at its start")
		}
		return c.ready
	})
	c.partial = c.epoch > 0
	c.note("aggregator %d is ready", c.epoch)
}

// down ends the aggregator with a signal, and notes what that leaves open.
func (c *conductor) down(s syscall.Signal) {
	c.note("signal %v to aggregator %d", s, c.epoch)
	c.drain()
	c.epoch++
	c.daemon.signal(s)
	c.await("the aggregator is dead", func() bool { return c.daemon == nil })
	for _, f := range c.all() {
		f.busy = f.busy || len(f.pending) > 0
		f.away = !f.unary && !f.owner.ended && (f.held || len(f.pending) > 0)
		if f.unary && f.acked != nil {
			// No other process brings it back.
			f.unsettle()
		}
	}
	c.unsteady = true
}

// finishDamage sees to it that a kernel that a foreign process damaged is not
// left to the next aggregator with updates on their way: they could take the
// place of what is lost.
func (c *conductor) finishDamage() {
	if c.damaged {
		c.rest()
		c.lossy = true
	}
}

// killAggregator kills the aggregator: at any time, just after an update was
// sent, or in the middle of a large snapshot.
func (c *conductor) killAggregator() {
	c.finishDamage()
	if c.partial && c.rng.IntN(2) == 0 {
		// So that checkDown can tell.
		c.rest()
	}
	moment := c.rng.IntN(4)
	if c.lossy {
		moment = 0
	}
	switch moment {
	case 0:
	case 1:
		c.update(c.pickFragment())
	case 2:
		for range 4 {
			c.update(c.pickFragment())
		}
		c.pump(time.After(time.Duration(c.rng.IntN(5)) * time.Millisecond))
	default:
		f := c.pickFragment()
		c.sum.large++
		c.send(f, author{c.rng, f}.large(f.acked, largeSize), opPut, false)
		c.pump(time.After(time.Duration(c.rng.IntN(60)) * time.Millisecond))
	}
	c.sum.aggregatorKills++
	c.down(syscall.SIGKILL)
	c.checkDown()
	switch c.rng.IntN(4) {
	case 0:
		// A publisher dies meanwhile, and its successor waits for the socket.
		p := c.pick()
		c.crash(p)
		c.spawn(p)
		c.launch()
		c.comeBack(p)
	case 1:
		c.pump(time.After(time.Duration(c.rng.IntN(300)) * time.Millisecond))
		c.launch()
	default:
		c.launch()
	}
	if c.lossy {
		c.rest()
	}
}

// restartGracefully ends the aggregator as an upgrade does.
func (c *conductor) restartGracefully() {
	c.finishDamage()
	if !c.lossy && c.rng.IntN(2) == 0 {
		c.update(c.pickFragment())
	}
	c.sum.restarts++
	c.down(syscall.SIGTERM)
	c.checkDown()
	c.launch()
	if c.lossy {
		c.rest()
	}
}

// outage kills the aggregator and has a foreign process damage what it left,
// before the next one starts.
func (c *conductor) outage() {
	c.quiet()
	c.note("outage")
	c.sum.outages++
	reboot := c.rng.IntN(2) == 0
	if reboot {
		// What is durable must come back without its publisher.
		for _, p := range c.publishers {
			p.signal(syscall.SIGSTOP)
			p.stopped, p.resume = true, c.step
		}
	}
	c.down(syscall.SIGKILL)
	c.lossy, c.damaged = true, true
	if reboot {
		c.foreign.wipe(c)
	} else {
		for range 1 + c.rng.IntN(4) {
			c.foreign.damage(c)
		}
	}
	c.launch()
	if reboot {
		c.checkDurable()
	}
	c.rest()
}
