package chaos

import (
	"slices"
	"syscall"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

const sigCont = syscall.SIGCONT

// largeSize is the number of elements of a large snapshot.
const largeSize = 10_000

// deed is a kind of step with its share of them.
type deed struct {
	weight int
	do     func(*conductor)
}

var deeds = []deed{
	{500, (*conductor).publish},
	{60, (*conductor).burst},
	{50, (*conductor).poison},
	{6, (*conductor).publishLarge},
	{30, (*conductor).interfere},
	{28, (*conductor).killPublisher},
	{8, (*conductor).stopPublisher},
	{12, (*conductor).reopen},
	{14, (*conductor).killAggregator},
	{3, (*conductor).restartGracefully},
	{2, (*conductor).outage},
	{12, (*conductor).quiet},
}

// tour is how often a step is one of the rare deeds, in an order that is the
// seed's: a short run sees each of them too.
const tour = 8

// run takes steps until the time is over.
func (c *conductor) run(d time.Duration) {
	total := 0
	for _, d := range deeds {
		total += d.weight
	}
	order := c.random(0).Perm(len(deeds))
	for end := time.Now().Add(d); time.Now().Before(end); {
		c.step++
		c.rng = c.random(c.step)
		c.drain()
		c.resume()
		c.stream.check(c)
		if c.step%tour == 0 {
			deeds[order[c.step/tour%len(order)]].do(c)
			continue
		}
		n := c.rng.IntN(total)
		for _, d := range deeds {
			if n -= d.weight; n < 0 {
				d.do(c)
				break
			}
		}
	}
	c.step++
	c.quiet()
}

// resume lets stopped publishers go on whose time has come.
func (c *conductor) resume() {
	for _, p := range c.publishers {
		if p.resume <= c.step {
			c.wake(p)
		}
	}
}

// pick draws a publisher.
func (c *conductor) pick() *publisher { return c.publishers[c.rng.IntN(len(c.publishers))] }

// pickFragment draws a fragment, and waits until it is known what it holds.
func (c *conductor) pickFragment() *fragment {
	p := c.pick()
	f := p.fragments[c.rng.IntN(len(p.fragments))]
	c.idle(f)
	return f
}

// publish sends an ordinary update.
func (c *conductor) publish() { c.update(c.pickFragment()) }

// update sends an ordinary update of a fragment, of which nothing is on its way.
func (c *conductor) update(f *fragment) {
	a := author{c.rng, f}
	if f.acked != nil && !f.service && c.rng.IntN(10) == 0 {
		c.send(f, nil, "", false)
		return
	}
	via := opPatch
	if c.rng.IntN(4) == 0 {
		via = opPut
	}
	c.send(f, a.change(f.acked), via, false)
}

// burst sends several patches of one fragment at once, which only add and
// remove elements of its own table: none of them can be refused.
func (c *conductor) burst() {
	f := c.pickFragment()
	if f.unary || f.acked == nil || f.silent {
		return
	}
	for range 2 + c.rng.IntN(6) {
		n := f.latest().clone()
		author{c.rng, f}.elements(declare(n.table(f.own), []string{"hosts", "ports"}[c.rng.IntN(2)]))
		c.send(f, n, opPatch, false)
	}
}

// poison sends what only the kernel refuses.
func (c *conductor) poison() {
	f := c.pickFragment()
	if f.acked == nil {
		return
	}
	p := poisons[c.rng.IntN(len(poisons))]
	via := []string{opPut, opPatch}[c.rng.IntN(2)]
	bad := poisoned(author{c.rng, f}.change(f.acked), f.own, p)
	// What is in no doubt stays so when the aggregator is killed over it.
	bad.lifetime = f.acked.lifetime
	c.send(f, bad, via, true)
}

// publishLarge sends a snapshot of many elements.
func (c *conductor) publishLarge() {
	f := c.pickFragment()
	if f.acked != nil && f.acked.tables[f.own] != nil && f.acked.tables[f.own].sets["large"] != nil {
		n := f.acked.clone()
		delete(n.tables[f.own].sets, "large")
		c.send(f, n, opPatch, false)
		return
	}
	c.sum.large++
	c.send(f, author{c.rng, f}.large(f.acked, largeSize), opPut, false)
}

// lose notes that a publisher's connection is gone: what was on its way may be
// in or out, what was the session's may go with it.
func (c *conductor) lose(p *publisher) {
	for _, f := range p.fragments {
		if f.unary && len(f.pending) == 0 {
			continue
		}
		bound := f.sessionBound()
		f.unsettle()
		if bound {
			f.unsettle(nil)
		}
		for _, u := range f.pending {
			c.sum.unknown++
			delete(c.inflight, u.id)
		}
		f.pending, f.away, f.held = nil, false, false
	}
	c.unsteady = true
}

// comeBack has a publisher send its fragments as it comes back: each is one of
// those that it may be, but what was the session's it may also forget.
func (c *conductor) comeBack(p *publisher) {
	for _, f := range p.fragments {
		switch {
		case !f.unsettled:
		case len(f.possible) == 1 && f.possible[0] == nil:
			f.unsettled, f.acked, f.silent = false, nil, false
		case f.mayForget() && c.rng.IntN(2) == 0:
			c.note("%s forgets %s", p.name, f)
			f.fading = slices.Clone(f.possible)
			f.unsettled, f.acked, f.silent = false, nil, false
		default:
			c.send(f, f.possible[c.rng.IntN(len(f.possible))], opPut, false)
		}
	}
}

// mayForget reports whether the fragment goes by itself if its publisher says
// nothing.
func (f *fragment) mayForget() bool {
	for _, c := range f.possible {
		if c != nil && c.lifetime != weftv1.Lifetime_LIFETIME_SESSION {
			return false
		}
	}
	return !f.unary
}

// killPublisher kills a publisher with updates on their way, and has it come
// back at once.
func (c *conductor) killPublisher() {
	p := c.pick()
	c.idleAll(p)
	if c.rng.IntN(2) == 0 {
		// The sooner it speaks, the more of the dead one is unread.
		p.heir = c.child(p)
		c.await(p.name+"'s heir is up", func() bool { return p.heirReady })
	}
	for _, f := range p.fragments {
		if c.rng.IntN(2) == 0 {
			c.update(f)
		}
	}
	if f := p.fragments[c.rng.IntN(2)]; len(f.pending) == 0 && f.acked != nil && c.rng.IntN(3) == 0 {
		// Its last words are long: much of them is read after its death.
		c.sum.large++
		c.send(f, author{c.rng, f}.large(f.acked, largeSize), opPut, false)
		c.pump(time.After(time.Duration(c.rng.IntN(60)) * time.Millisecond))
	}
	c.pump(time.After(time.Duration(c.rng.IntN(6)) * time.Millisecond))
	c.crash(p)
	c.spawn(p)
	c.comeBack(p)
}

func (c *conductor) idleAll(p *publisher) {
	for _, f := range p.fragments {
		c.idle(f)
	}
}

// crash kills a publisher and takes its last words.
func (c *conductor) crash(p *publisher) {
	c.sum.publisherKills++
	c.note("kill %s", p.name)
	p.signal(syscall.SIGKILL)
	c.await(p.name+" is dead", func() bool { return p.ended })
	p.stopped = false
	c.lose(p)
}

// spawn starts a publisher's process, or takes the one that is there.
func (c *conductor) spawn(p *publisher) {
	p.process, p.ready, p.ended = p.heir, p.heirReady, false
	if p.heir == nil {
		p.process = c.child(p)
	}
	p.heir, p.heirReady = nil, false
}

// child starts a process for a publisher.
func (c *conductor) child(p *publisher) *process {
	child, err := start(c.outside, rolePublisher, publisherConfig{Socket: c.socket, Name: p.name}, c.log("publishers"), c.events)
	if err != nil {
		c.fatal("%v", err)
	}
	return child
}

// stopPublisher stops a publisher for some steps; it then goes on as if nothing
// had been.
func (c *conductor) stopPublisher() {
	p := c.pick()
	if !p.ready || p.stopped {
		return
	}
	if c.rng.IntN(2) == 0 {
		c.update(c.idleOf(p))
	}
	c.note("stop %s", p.name)
	p.signal(syscall.SIGSTOP)
	p.stopped, p.resume = true, c.step+1+c.rng.IntN(20)
	c.sum.stops++
}

// idleOf draws one of a publisher's fragments, and waits for it.
func (c *conductor) idleOf(p *publisher) *fragment {
	f := p.fragments[c.rng.IntN(len(p.fragments))]
	c.idle(f)
	return f
}

// reopen has a publisher end its session and begin another one.
func (c *conductor) reopen() {
	p := c.pick()
	c.idleAll(p)
	if c.rng.IntN(2) == 0 {
		c.update(p.fragments[c.rng.IntN(len(p.fragments))])
	}
	c.wake(p)
	c.await(p.name+" is up", func() bool { return p.ready })
	c.lastID++
	c.note("reopen %s %d", p.name, c.lastID)
	id := c.lastID
	c.inflight[id] = &update{id: id, op: opReopen}
	if err := p.in.write(command{ID: id, Op: opReopen}); err != nil {
		c.fatal("%v", err)
	}
	c.sum.disconnects++
	c.await("all of "+p.name+" is answered", func() bool {
		for _, f := range p.fragments {
			if len(f.pending) > 0 {
				return false
			}
		}
		return c.inflight[id] == nil
	})
	c.lose(p)
	c.comeBack(p)
}
