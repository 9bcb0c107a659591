package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// patience bounds every wait: far more than a loaded machine needs.
const patience = time.Minute

// publishers is how many there are.
const publishers = 8

// conductor is the one goroutine that knows everything.
type conductor struct {
	t     *testing.T
	seed  uint64
	owned bool
	// dir holds sockets, state and logs.
	dir    string
	socket string

	node    *nfttest.NS
	outside *nfttest.NS
	stream  *stream
	foreign foreign

	daemon     *process
	ready      bool
	publishers []*publisher
	events     chan event
	logs       map[string]*os.File
	journal    *os.File

	// step is the number of the current one; its choices come from rng.
	step int
	rng  *rand.Rand
	// epoch counts the aggregators.
	epoch  int
	lastID uint64
	// inflight are the commands without a reply.
	inflight map[uint64]*update
	// damaged is true after a foreign change that may not be repaired yet; lossy
	// from a restart on whose kernel had lost content until all is settled.
	damaged, lossy bool
	// partial is true from a restart until all fragments are back: until then what
	// one of them no longer states stays in the sets that it shares, because
	// their owner is unknown.
	partial bool
	// unsteady is true when the kernel may still change by itself: sessions
	// ended, or an aggregator started.
	unsteady bool

	sum summary
}

// summary is what a run did.
type summary struct {
	acked, rejected, poisoned, unknown                              int
	aggregatorKills, publisherKills, restarts, outages, disconnects int
	foreign, forbidden, damages, large, quiet, down, durable        int
	slowestRepair                                                   time.Duration
}

// publisher is the conductor's view of one.
type publisher struct {
	name string
	*process
	ready, stopped, ended bool
	fragments             []*fragment
}

// fragment is what the conductor knows of one.
type fragment struct {
	owner *publisher
	name  string
	// own is the table that no other publisher uses.
	own string
	// unary fragments are published by calls, not on the session; sticky ones
	// have this lifetime always; provider and service say what they hold.
	unary, sticky, provider, service bool

	// acked is what the last acknowledged update made of it.
	acked   *content
	ackedID uint64
	// pending are the updates without an answer, in order.
	pending []*update
	// unsettled means that it is one of possible that it holds; else it is acked.
	unsettled bool
	possible  []*content
	// fading is what a publisher forgot and its session, or the grace of a
	// restart, has not yet taken away.
	fading []*content
	// silent is true after a withdrawal was refused: the session has given
	// the fragment up, the aggregator has not.
	silent bool
	// held is true while the session will bring the fragment back by itself.
	held bool
	// refusal is the text of the last rejection of an update.
	refusal string
	// away is true from a kill of the aggregator until the session has
	// brought the fragment back; busy if something was on its way then.
	away, busy bool
}

// update is a command with an answer to come.
type update struct {
	id      uint64
	op      string
	f       *fragment
	content *content
	poison  bool
	epoch   int
}

func newConductor(t *testing.T, seed uint64, owned bool) *conductor {
	dir, err := os.MkdirTemp("", "weft-chaos-")
	if err != nil {
		t.Fatal(err)
	}
	c := &conductor{
		t: t, seed: seed, owned: owned, dir: dir, socket: filepath.Join(dir, "weft.sock"),
		events: make(chan event, 4096), logs: make(map[string]*os.File), inflight: make(map[uint64]*update),
	}
	c.journal = c.log("journal")
	c.rng = c.random(0)
	for i := range publishers {
		p := &publisher{name: fmt.Sprintf("p%d", i)}
		own := "inet " + p.name
		p.fragments = []*fragment{
			{owner: p, name: "a", own: own, sticky: true, provider: i < publishers/2, service: i == 0},
			{owner: p, name: "b", own: own},
			{owner: p, name: "u", own: own, unary: true},
		}
		c.publishers = append(c.publishers, p)
	}
	return c
}

// random returns the choices of a step: they do not depend on how many another
// step has drawn.
func (c *conductor) random(step int) *rand.Rand {
	return rand.New(rand.NewPCG(c.seed, uint64(step)))
}

// log opens a file of the run.
func (c *conductor) log(name string) *os.File {
	if c.logs[name] == nil {
		f, err := os.OpenFile(filepath.Join(c.dir, name), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
		if err != nil {
			c.t.Fatal(err)
		}
		c.logs[name] = f
	}
	return c.logs[name]
}

// note writes a line to the journal.
func (c *conductor) note(format string, args ...any) {
	fmt.Fprintf(c.journal, "%s step %d: %s\n", time.Now().Format("15:04:05.000"), c.step, fmt.Sprintf(format, args...))
}

// fatal ends the run.
func (c *conductor) fatal(format string, args ...any) {
	c.t.Helper()
	c.note("FAILED: "+format, args...)
	c.t.Fatalf("step %d: %s", c.step, fmt.Sprintf(format, args...))
}

// must ends the run on an error.
func (c *conductor) must(err error) {
	c.t.Helper()
	if err != nil {
		c.fatal("%v", err)
	}
}

func (f *fragment) String() string { return f.owner.name + "/" + f.name }

// sessionBound reports whether the fragment may go with its session.
func (f *fragment) sessionBound() bool {
	return slices.ContainsFunc(f.options(), func(c *content) bool {
		return c != nil && c.GetLifetime() == weftv1.Lifetime_LIFETIME_SESSION
	})
}

// options are the contents that the fragment may have now.
func (f *fragment) options() []*content {
	out := []*content{f.acked}
	if f.unsettled {
		out = slices.Clone(f.possible)
	}
	for _, o := range f.fading {
		if !slices.Contains(out, o) {
			out = append(out, o)
		}
	}
	for _, u := range f.pending {
		if !u.poison && !slices.Contains(out, u.content) {
			out = append(out, u.content)
		}
	}
	return out
}

// unsettle makes the fragment one of what it may be.
func (f *fragment) unsettle(more ...*content) {
	options := f.options()
	for _, m := range more {
		if !slices.Contains(options, m) {
			options = append(options, m)
		}
	}
	f.unsettled, f.possible = true, options
}

// pump takes one event, or returns false when none came in time.
func (c *conductor) pump(timeout <-chan time.Time) bool {
	select {
	case e := <-c.events:
		c.take(e)
		return true
	case <-timeout:
		return false
	}
}

// drain takes the events that are there.
func (c *conductor) drain() {
	for len(c.events) > 0 {
		c.take(<-c.events)
	}
}

// await takes events until a condition holds.
func (c *conductor) await(what string, cond func() bool) {
	c.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for !cond() {
		if !c.pump(timer.C) {
			c.fatal("still not so after %v: %s", patience, what)
		}
	}
}

// take is where everything that processes say is believed.
func (c *conductor) take(e event) {
	if e.from == c.daemon {
		switch e.Kind {
		case replyReady:
			c.ready = true
		case replyEnded:
			c.note("aggregator ended: %s", e.Error)
			c.daemon = nil
		}
		return
	}
	i := slices.IndexFunc(c.publishers, func(p *publisher) bool { return p.process == e.from })
	if i < 0 {
		// An aggregator's or publisher's last words, after its successor began.
		return
	}
	p := c.publishers[i]
	switch e.Kind {
	case replyReady:
		p.ready = true
	case replyEnded:
		c.note("%s ended: %s", p.name, e.Error)
		p.ended = true
	case replySynced:
		c.synced(p, e.reply)
	default:
		c.answered(e.reply)
	}
}

// answered notes the outcome of a command.
func (c *conductor) answered(r reply) {
	u := c.inflight[r.ID]
	if u == nil {
		c.fatal("reply to no command: %+v", r)
	}
	delete(c.inflight, r.ID)
	c.note("%s %s %d: %s %d %v %s", u.op, u.f, u.id, r.Kind, r.Revision, r.Reasons, r.Error)
	f := u.f
	if f == nil {
		return
	}
	before := f.options()
	f.pending = slices.DeleteFunc(f.pending, func(o *update) bool { return o == u })
	switch r.Kind {
	case replyCommitted:
		c.sum.acked++
		if u.poison {
			c.fatal("poison was acknowledged: %s %s %d", u.op, u.f, u.id)
		}
		if u.id < f.ackedID {
			// Of a burst: the replies come in any order, the updates took effect in theirs.
			break
		}
		f.acked, f.ackedID = u.content, u.id
		f.unsettled, f.silent, f.away, f.fading = false, false, false, nil
		f.held = !f.unary && u.content != nil
		if f.unary && f.acked != nil && u.epoch != c.epoch {
			// By the aggregator before, perhaps: this one waits for it still.
			f.unsettle()
		}
	case replyRejected:
		c.sum.rejected++
		f.refusal = r.Error
		c.judge(u, r)
		if u.op == opWithdraw {
			f.silent, f.held, f.away = true, false, false
		}
		f.away = f.away && f.held
		if u.epoch != c.epoch && !u.poison && !f.unsettled {
			// What was refused may be the resync of something committed.
			f.unsettled, f.possible = true, before
		}
	default:
		c.sum.unknown++
		f.away = false
		if !u.poison && !f.unsettled {
			f.unsettled, f.possible = true, before
		}
	}
}

// judge fails the run where an update was refused for an impossible reason.
func (c *conductor) judge(u *update, r reply) {
	for _, reason := range r.Reasons {
		switch reason {
		case weftv1.Violation_REASON_CONFLICT.String(), weftv1.Violation_REASON_REFERENCE.String():
			continue
		case weftv1.Violation_REASON_INVALID.String():
			// A set that no fragment declares at the moment.
			if strings.Contains(r.Error, "@libset is not declared") {
				continue
			}
		case weftv1.Violation_REASON_KERNEL.String():
			if u.poison {
				c.sum.poisoned++
				continue
			}
		}
		c.fatal("%s %s %d was refused as %s: %s", u.op, u.f, u.id, reason, r.Error)
	}
}

// synced notes that a session brought a fragment back, or could not.
func (c *conductor) synced(p *publisher, r reply) {
	i := slices.IndexFunc(p.fragments, func(f *fragment) bool { return f.name == r.Name })
	f := p.fragments[i]
	c.note("synced %s: %d %v %s", f, r.Revision, r.Reasons, r.Error)
	if len(r.Reasons) > 0 {
		known := f.busy || len(f.pending) > 0 || f.refusal == r.Error
		if !known && !c.lossy && !f.unsettled && !f.sessionBound() {
			c.fatal("what was acknowledged is refused at the resync of %s: %s", f, r.Error)
		}
		f.unsettle()
	}
	f.away = false
}

// send tells a publisher to make its fragment hold a content, by call or on its session, which
// sends the difference if it can.
func (c *conductor) send(f *fragment, to *content, isPoison bool) {
	p := f.owner
	c.wake(p)
	c.await(p.name+" is up", func() bool { return p.ready })
	c.lastID++
	u := &update{id: c.lastID, f: f, content: to, poison: isPoison, epoch: c.epoch}
	cmd := command{ID: u.id, Name: f.name}
	if to != nil {
		cmd.Fragment = encodeFragment(to)
	}
	switch {
	case f.unary && to == nil:
		cmd.Op = opDelete
	case f.unary:
		cmd.Op = opApply
	case to == nil:
		cmd.Op = opWithdraw
	default:
		cmd.Op = opPut
	}
	u.op = cmd.Op
	c.note("%s %s %d poison=%t\t%.4000s", u.op, f, u.id, isPoison, cmd.Fragment)
	c.inflight[u.id] = u
	f.busy = f.busy || f.away
	f.pending = append(f.pending, u)
	if err := p.in.write(cmd); err != nil {
		c.note("write to %s: %v", p.name, err)
	}
}

// latest is what the fragment holds if everything on its way is committed.
func (f *fragment) latest() *content {
	for _, u := range slices.Backward(f.pending) {
		if !u.poison {
			return u.content
		}
	}
	if f.unsettled {
		return f.possible[0]
	}
	return f.acked
}

// idle waits until nothing of the fragment is on its way, and it is known what
// it holds.
func (c *conductor) idle(f *fragment) {
	if len(f.pending) > 0 {
		c.wake(f.owner)
	}
	c.await(f.String()+" is answered", func() bool { return len(f.pending) == 0 })
	if f.unsettled {
		c.finish(f)
	}
}
