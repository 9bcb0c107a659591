package chaos

import (
	"slices"
	"syscall"
	"time"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

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
		c.send(f, nil, false)
		return
	}
	c.send(f, a.change(f.acked), false)
}

// burst sends several updates of one fragment at once, which only add and
// remove elements of its own table: none of them can be refused.
func (c *conductor) burst() {
	f := c.pickFragment()
	if f.unary || f.acked == nil || f.silent {
		return
	}
	for range 2 + c.rng.IntN(6) {
		n := proto.CloneOf(f.latest())
		author{c.rng, f}.elements(declare(tableOf(n, f.own), one(author{c.rng, f}, "hosts", "ports")))
		c.send(f, n, false)
	}
}

// poison sends what only the kernel refuses.
func (c *conductor) poison() {
	f := c.pickFragment()
	if f.acked == nil {
		return
	}
	p := poisons[c.rng.IntN(len(poisons))]
	bad := poisoned(author{c.rng, f}.change(f.acked), f.own, p)
	// What is in no doubt stays so when the aggregator is killed over it.
	bad.Lifetime = f.acked.GetLifetime()
	c.send(f, bad, true)
}

// publishLarge sends a snapshot of many elements.
func (c *conductor) publishLarge() {
	f := c.pickFragment()
	if find(findTable(f.acked, f.own).GetSets(), "large") != nil {
		n := proto.CloneOf(f.acked)
		t := findTable(n, f.own)
		t.Sets = without(t.GetSets(), "large")
		c.send(f, n, false)
		return
	}
	c.sum.large++
	c.send(f, author{c.rng, f}.large(f.acked), false)
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
			c.send(f, f.possible[c.rng.IntN(len(f.possible))], false)
		}
	}
}

// mayForget reports whether the fragment goes by itself if its publisher says
// nothing.
func (f *fragment) mayForget() bool {
	for _, c := range f.possible {
		if c != nil && c.GetLifetime() != weftv1.Lifetime_LIFETIME_SESSION {
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
	for _, f := range p.fragments {
		if c.rng.IntN(2) == 0 {
			c.update(f)
		}
	}
	if f := p.fragments[c.rng.IntN(2)]; len(f.pending) == 0 && f.acked != nil && c.rng.IntN(3) == 0 {
		// Its last words are long: much of them is read after its death.
		c.sum.large++
		c.send(f, author{c.rng, f}.large(f.acked), false)
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

// spawn starts a publisher's process.
func (c *conductor) spawn(p *publisher) {
	p.process = c.start(c.outside, childConfig{Socket: c.socket, Publisher: p.name}, "publishers")
	p.ready, p.ended = false, false
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
	c.must(p.in.write(command{ID: id, Op: opReopen}))
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

// grace is how long session fragments wait for their publisher after a restart
// of the aggregator.
const grace = 2 * time.Second

// launch starts the aggregator and waits until it commits.
func (c *conductor) launch() {
	c.t.Helper()
	cfg := childConfig{Socket: c.socket, StateDir: c.dir + "/state", NoOwner: !c.owned, Grace: grace}
	if c.seed%2 == 0 {
		cfg.Rate = 20
	}
	c.daemon = c.start(c.node, cfg, "aggregator")
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
		c.send(f, author{c.rng, f}.large(f.acked), false)
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
			p.stopped = true
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

// poisons are what the compiler takes and the kernel does not, wherever it stands. They are put into
// a publisher's own table, which is of family inet.
var poisons = []func(t *weftv1.Table){
	// Nat in a filter chain.
	func(t *weftv1.Table) {
		putChain(t, "bad", [3]string{"filter", "forward", "filter"}, "ip daddr 10.203.0.1 dnat ip to 10.203.0.2")
	},
	// Masquerade before routing.
	func(t *weftv1.Table) {
		putChain(t, "bad", [3]string{"nat", "prerouting", "dstnat"}, "ip saddr 10.203.0.1 masquerade")
	},
	// Reject after routing.
	func(t *weftv1.Table) {
		putChain(t, "bad", [3]string{"filter", "postrouting", "filter"}, "ip saddr 10.203.0.1 reject")
	},
	// A loop of jumps.
	func(t *weftv1.Table) {
		putChain(t, "bad", [3]string{"filter", "forward", "filter"}, "jump bad1")
		putChain(t, "bad1", leaf, "jump bad2")
		putChain(t, "bad2", leaf, "jump bad1")
	},
	// Overlapping intervals.
	func(t *weftv1.Table) {
		put(declare(t, "badnets"), &weftv1.Element{Key: "10.203.0.0/24"})
		put(declare(t, "badnets"), &weftv1.Element{Key: "10.203.0.128/25"})
	},
	// A full set.
	func(t *weftv1.Table) {
		s := declare(t, "badhosts")
		s.Size = 2
		for i := range 5 {
			put(s, &weftv1.Element{Key: host(203, i)})
		}
	},
}

// poisoned returns a content with a poison in it.
func poisoned(old *content, own string, poison func(*weftv1.Table)) *content {
	c := proto.CloneOf(old)
	poison(tableOf(c, own))
	return c
}
