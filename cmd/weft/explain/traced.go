package explain

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/eval"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/set"
)

const (
	// quiet is how long nothing is heard of a packet until it is taken to be through: the kernel
	// does not say which chain is its last.
	quiet = 200 * time.Millisecond
	// maxOpen and maxSteps bound what is kept of packets that are on their way.
	maxOpen  = 256
	maxSteps = 512
	// reloadAfter is the least time between two readings of the ruleset.
	reloadAfter = time.Second
)

// Traced is a packet that the kernel has traced.
type Traced struct {
	Time time.Time `json:"time"`
	// Sentence is what became of it: if it was stopped the cause, then the remedy. By is the rule that stopped it.
	Sentence string         `json:"answer"`
	By       string         `json:"by,omitempty"`
	Protocol string         `json:"protocol"`
	From     netip.AddrPort `json:"from"`
	To       netip.AddrPort `json:"to"`
	// Flags are those of TCP, such as "syn,ack".
	Flags string `json:"flags,omitempty"`
	// In and Out are interfaces; In is empty for a packet of the node itself, Out for one that
	// did not come so far, or that stays.
	In  string `json:"in,omitempty"`
	Out string `json:"out,omitempty"`
	// Verdict is "accept", "drop" or "reject".
	Verdict string `json:"verdict"`
	// LastFrom and LastTo are the addresses that it had at the last chain.
	LastFrom netip.AddrPort `json:"lastFrom"`
	LastTo   netip.AddrPort `json:"lastTo"`
	Steps    []Step         `json:"steps"`

	// id is the packet's ID, seen is when the last event came, and base is the base chain that the packet is in.
	id   uint32
	seen time.Time
	base string
	// selected are the chains of weft trace that have selected the packet, and over is true if another packet has its
	// ID now.
	selected []string
	over     bool
	// cut is true if there were more steps than are kept.
	cut bool
}

// collector makes packets of events.
type collector struct {
	*asker
	// load reads the ruleset.
	load func() (*eval.Ruleset, error)
	// own is the name of the tables whose rules select packets.
	own   string
	print func(*Traced) error
	// left is how many packets are still to be printed.
	left int
	// open are the packets that are on their way, by ID, and order are those that are not printed yet, in the order of
	// their beginnings.
	open  map[uint32]*Traced
	order []*Traced
	// reloaded is when the ruleset was last read again, lost counts events that were lost.
	reloaded time.Time
	lost     int
}

// run prints packets until there are enough or ctx ends, and returns nil then.
func (c *collector) run(ctx context.Context, events <-chan kernel.TraceEvent) error {
	c.open = make(map[uint32]*Traced)
	tick := time.NewTicker(quiet / 4)
	defer tick.Stop()
	for c.left > 0 {
		select {
		case <-ctx.Done():
			return c.flush(func(*Traced) bool { return true })
		case e, ok := <-events:
			if !ok {
				return c.flush(func(*Traced) bool { return true })
			}
			if err := c.add(&e); err != nil {
				return err
			}
		case now := <-tick.C:
			if err := c.flush(func(p *Traced) bool { return p.ended(now) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush prints the packets that are over, in the order of their beginnings: one that is not over
// holds those that began after it.
func (c *collector) flush(over func(*Traced) bool) error {
	for len(c.order) > 0 && c.left > 0 {
		p := c.order[0]
		if !over(p) {
			return nil
		}
		if c.open[p.id] == p {
			delete(c.open, p.id)
		}
		c.order = c.order[1:]
		c.left--
		p.finish(c.lost)
		c.lost = 0
		if err := c.print(p); err != nil {
			return err
		}
	}
	return nil
}

// add adds an event to its packet.
func (c *collector) add(e *kernel.TraceEvent) error {
	switch e.Type {
	case kernel.TraceOverrun:
		c.lost++
		return nil
	case kernel.TraceFailed:
		return e.Err
	}
	now, p := time.Now(), c.open[e.ID]
	// Other programs may trace too: the packets that count have matched a rule of weft trace.
	selects := e.Type == kernel.TraceRule && strings.HasPrefix(e.Table.Name, c.own)
	if p != nil && (p.ended(now) || selects && slices.Contains(p.selected, e.Chain)) {
		// Another packet has the same ID.
		p.over, p = true, nil
		delete(c.open, e.ID)
	}
	switch {
	case p == nil && !selects:
		return nil
	case p == nil && len(c.order) >= maxOpen:
		c.lost++
		return nil
	case p == nil:
		p = &Traced{Time: now, Verdict: wordAccept, Steps: []Step{}, id: e.ID}
		c.open[e.ID] = p
		c.order = append(c.order, p)
	}
	if selects {
		p.selected = append(p.selected, e.Chain)
	}
	p.seen = now
	c.step(p, e)
	return nil
}

// ended reports whether nothing more is heard of a packet.
func (p *Traced) ended(now time.Time) bool {
	return p.over || p.Verdict != wordAccept || now.Sub(p.seen) > quiet
}

// step adds what an event says to a packet.
func (c *collector) step(p *Traced, e *kernel.TraceEvent) {
	if len(e.Network) > 0 {
		// The first event in a base chain.
		p.base = e.Chain
		p.headers(e)
		if e.In != 0 && p.In == "" {
			p.In = c.interfaceName(e.In)
		}
		if e.Out != 0 {
			p.Out = c.interfaceName(e.Out)
		}
	}
	if e.Type == kernel.TraceReturn || strings.HasPrefix(e.Table.Name, c.own) {
		return
	}
	if len(p.Steps) >= maxSteps {
		p.cut = true
		return
	}
	s := eval.Step{Table: e.Table, Chain: e.Chain, Rule: e.Rule, Verdict: e.Verdict}
	if e.Type == kernel.TracePolicy {
		s.Rule, s.Verdict = 0, set.Verdict{Code: e.Policy}
	}
	chain := c.chainOf(e.Table, p.base)
	if s.Rule != 0 {
		s.Matched = c.rule(e.Table, e.Chain, e.Rule)
		if s.Matched == nil {
			// It has gone since.
			s.Matched = &eval.Rule{Handle: e.Rule, Comment: "it is gone"}
		}
	}
	step := c.describe(&s, p.base)
	step.Hook = "-"
	if chain != nil && chain.Decl.Base != nil {
		step.Hook = hookName(e.Table.Family, chain.Decl.Base.Hook)
	}
	if target := s.Verdict.Chain; target != "" && !strings.HasSuffix(step.Rule, " "+target) {
		step.Lookups = append(step.Lookups, s.Verdict.String())
	}
	p.Steps = append(p.Steps, step)
	if s.Verdict.Code == datatype.VerdictDrop {
		p.Verdict = step.Verdict
	}
}

// hookName returns the name of a hook.
func hookName(family nft.Family, hook uint32) string {
	if family == nft.FamilyNetdev || int(hook) >= len(hooks) {
		return "ingress"
	}
	return hooks[hook]
}

// headers reads the addresses.
func (p *Traced) headers(e *kernel.TraceEvent) {
	f, ok := flowOfHeaders(e.Network, e.Transport)
	if !ok {
		return
	}
	p.LastFrom, p.LastTo = f.source, f.destination
	if p.From.IsValid() {
		return
	}
	p.From, p.To, p.Protocol = f.source, f.destination, protocolName(f.protocol)
	if f.protocol == unix.IPPROTO_TCP && len(e.Transport) > 13 {
		p.Flags = tcpFlags(e.Transport[13])
	}
}

// tcpFlags returns the names of flags.
func tcpFlags(b byte) string {
	var out []string
	for i, name := range []string{"fin", "syn", "rst", "psh", "ack", "urg", "ecn", "cwr"} {
		if b&(1<<i) != 0 {
			out = append(out, name)
		}
	}
	return strings.Join(out, ",")
}

// finish says what became of the packet.
func (p *Traced) finish(lost int) {
	changed := ""
	if p.LastTo != p.To {
		changed += ", now to " + p.LastTo.String()
	}
	if p.LastFrom != p.From {
		changed += ", now from " + p.LastFrom.String()
	}
	switch end := (&Way{Verdict: p.Verdict, Steps: p.Steps}); {
	case p.Verdict != wordAccept:
		p.Sentence, p.By = end.ending(nil), end.by()
	case p.Out != "":
		p.Sentence = "The packet passed all rules" + changed + ", leaving through " + p.Out
	default:
		p.Sentence = "The packet passed all rules" + changed
	}
	p.Sentence += "."
	if p.cut {
		p.Sentence += fmt.Sprintf(" Only its first %d steps are shown.", maxSteps)
	}
	if lost > 0 {
		p.Sentence += " Some events were lost, so that steps or packets may be missing: lower --rate."
	}
}

// interfaceName returns the name of an interface, or its number if it has gone.
func (c *collector) interfaceName(index uint32) string {
	i, err := c.host.link(int(index))
	if err != nil {
		return fmt.Sprintf("interface %d", index)
	}
	return i.Name
}

// chainOf returns a chain, of a new reading of the ruleset if it is not known.
func (c *collector) chainOf(table nft.TableID, name string) *eval.Chain {
	if chain := c.chain(table, name); chain != nil {
		return chain
	}
	c.reload()
	return c.chain(table, name)
}

// rule returns a rule, of a new reading of the ruleset if it is not known; nil if there is none.
func (c *collector) rule(table nft.TableID, name string, handle uint64) *eval.Rule {
	for range 2 {
		if chain := c.chain(table, name); chain != nil {
			rules := chain.Rules
			if chain.Load != nil {
				// Of a chain that has gone there are none.
				rules, _ = chain.Load()
			}
			if i := slices.IndexFunc(rules, func(r eval.Rule) bool { return r.Handle == handle }); i >= 0 {
				return &rules[i]
			}
		}
		if !c.reload() {
			break
		}
	}
	return nil
}

// reload reads the ruleset again, unless it was read a moment ago.
func (c *collector) reload() bool {
	if time.Since(c.reloaded) < reloadAfter {
		return false
	}
	c.reloaded = time.Now()
	rules, err := c.load()
	if err != nil {
		return false
	}
	c.rules = rules
	return true
}
