package chaos

import (
	"context"
	"fmt"
	"slices"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

// all returns all fragments.
func (c *conductor) all() (out []*fragment) {
	for _, p := range c.publishers {
		out = append(out, p.fragments...)
	}
	return out
}

// wake lets a stopped publisher go on.
func (c *conductor) wake(p *publisher) {
	if p.stopped {
		p.signal(sigCont)
		p.stopped = false
		c.note("%s goes on", p.name)
	}
}

// finish makes a fragment hold something that it may hold. One of the contents
// must be accepted, as it is there already; but others may have to come back
// first.
func (c *conductor) finish(f *fragment) {
	c.wake(f.owner)
	c.await(f.String()+" is answered", func() bool { return len(f.pending) == 0 })
	order := c.rng.Perm(8)
	deadline := time.Now().Add(patience)
	for n := 0; f.unsettled; n++ {
		if time.Now().After(deadline) {
			c.fatal("%s is refused in every form that it may have: %d of them", f, len(f.possible))
		}
		to := f.possible[order[n%len(order)]%len(f.possible)]
		c.send(f, to, opPut, false)
		c.await(f.String()+" is settled", func() bool { return len(f.pending) == 0 })
		if f.unsettled {
			c.others(f)
			// A unary call fails at once while the client waits to connect again.
			c.pump(time.After(20 * time.Millisecond))
		}
	}
}

// others puts the other fragments that are not settled, once each: what was
// refused may refer to them.
func (c *conductor) others(f *fragment) {
	for _, o := range c.all() {
		if o != f && o.unsettled && len(o.pending) == 0 {
			c.send(o, o.possible[c.rng.IntN(len(o.possible))], opPut, false)
		}
	}
	c.allAnswered()
}

// allAnswered waits until nothing is on its way.
func (c *conductor) allAnswered() {
	for _, p := range c.publishers {
		c.wake(p)
	}
	c.await("everything is answered", func() bool { return len(c.inflight) == 0 })
}

// rest brings everything to rest: every publisher is up, answered and in sync,
// every fragment settled.
func (c *conductor) rest() {
	for _, p := range c.publishers {
		c.wake(p)
	}
	c.await("all publishers are up", func() bool {
		return !slices.ContainsFunc(c.publishers, func(p *publisher) bool { return !p.ready })
	})
	c.allAnswered()
	c.await("all sessions are in sync", func() bool {
		return !slices.ContainsFunc(c.all(), func(f *fragment) bool { return f.away })
	})
	for _, f := range c.all() {
		if f.unsettled {
			c.finish(f)
		}
	}
	c.lossy = false
	c.partial = c.partial && slices.ContainsFunc(c.all(), func(f *fragment) bool { return len(f.fading) > 0 })
	for _, f := range c.all() {
		f.busy = false
	}
}

// quiet compares the kernel with the merge of what was acknowledged.
func (c *conductor) quiet() {
	c.t.Helper()
	c.rest()
	c.sum.quiet++
	c.note("quiet: damaged=%t unsteady=%t", c.damaged, c.unsteady)
	want := c.expected()
	if d := c.compare(want); d != "" {
		if !c.damaged && !c.unsteady {
			c.fatal("the kernel is not the merge of what was acknowledged:\n%s", d)
		}
		began := time.Now()
		for d != "" {
			if time.Since(began) > patience {
				c.fatal("after %v the kernel is not the merge of what was acknowledged:\n%s", patience, d)
			}
			c.pump(time.After(20 * time.Millisecond))
			d = c.compare(want)
		}
	}
	c.damaged, c.unsteady, c.partial = false, false, false
	for _, f := range c.all() {
		f.fading = nil
	}
	c.checkList()
	// A publisher whose withdrawal was refused must say that it goes on.
	for _, f := range c.all() {
		if f.silent {
			c.send(f, f.acked, opPut, false)
		}
	}
	c.allAnswered()
}

// fragments returns what is acknowledged.
func (c *conductor) fragments() (out []held) {
	for _, f := range c.all() {
		out = append(out, held{f.owner.name, f.name, f.acked})
	}
	return out
}

// expected is what the kernel should hold, the tables of others included.
func (c *conductor) expected() ruleset {
	want := merge(c.fragments())
	for id, lines := range c.foreign.tables {
		want[id] = lines
	}
	return want
}

// compare lists the kernel and says how it differs.
func (c *conductor) compare(want ruleset) string {
	c.t.Helper()
	got, err := listRuleset(c.node)
	if err != nil {
		c.fatal("%v", err)
	}
	return difference(want, got)
}

// checkList compares what the aggregator says of its fragments.
func (c *conductor) checkList() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cl, err := client.Dial(ctx, client.Config{Socket: c.socket, Publisher: "conductor"})
	if err != nil {
		c.fatal("%v", err)
	}
	defer cl.Close()
	list, err := cl.List(ctx)
	if err != nil {
		c.fatal("%v", err)
	}
	hidden := shadowed(c.fragments())
	got := make(map[string]string)
	for _, s := range list.GetFragments() {
		key := s.GetFragment().Text()
		got[key] = fmt.Sprintf("priority %d, %s, %d elements, %d shadowed", s.GetPriority(), s.GetLifetime(), s.GetElements(), s.GetShadowed())
		if s.GetState() == weftv1.FragmentStatus_STATE_ADOPTED {
			// Its lifetime and elements are known once it is back.
			got[key] = fmt.Sprintf("priority %d", s.GetPriority())
		}
	}
	for _, f := range c.all() {
		switch h := f.acked; {
		case h == nil && got[f.String()] != "":
			c.fatal("%s is not there, but is listed: %s", f, got[f.String()])
		case h == nil:
		default:
			want := fmt.Sprintf("priority %d, %s, %d elements, %d shadowed", h.priority, h.lifetime, h.elements(), hidden[f.String()])
			if g := got[f.String()]; g != want && g != fmt.Sprintf("priority %d", h.priority) {
				c.fatal("%s is listed as %q, want %q", f, g, want)
			}
			delete(got, f.String())
		}
	}
	for key, g := range got {
		c.fatal("%s is listed (%s), and no publisher published it", key, g)
	}
}

// checkDown compares the kernel while no aggregator runs: each fragment has one
// of the contents that it may have. It gives up where that is too many.
func (c *conductor) checkDown() {
	c.t.Helper()
	if c.damaged || c.partial {
		return
	}
	options := [][]held{nil}
	for _, f := range c.all() {
		may := f.options()
		if f.sessionBound() && (f.owner.ended || f.away) && !slices.Contains(may, nil) {
			may = append(may, nil)
		}
		var next [][]held
		for _, o := range options {
			for _, m := range may {
				next = append(next, append(slices.Clip(o), held{f.owner.name, f.name, m}))
			}
		}
		if options = next; len(options) > 64 {
			return
		}
	}
	c.sum.down++
	got, err := listRuleset(c.node)
	if err != nil {
		c.fatal("%v", err)
	}
	best := ""
	for _, o := range options {
		want := merge(o)
		for id, lines := range c.foreign.tables {
			want[id] = lines
		}
		d := difference(want, got)
		if d == "" {
			return
		}
		if best == "" || len(d) < len(best) {
			best = d
		}
	}
	c.fatal("the aggregator was killed, and the kernel is not the merge of what may have been committed (%d ways); the nearest differs by:\n%s", len(options), best)
}
