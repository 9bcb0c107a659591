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
	// The kernel does not mark the last chain: a packet is over after quiet.
	quiet = 200 * time.Millisecond
	// maxOpen bounds collector.order, maxSteps the steps of a packet.
	maxOpen  = 256
	maxSteps = 512
	// reloadAfter is between two readings of the ruleset.
	reloadAfter = time.Second
)

// Traced is a packet that the kernel has traced.
type Traced struct {
	Time time.Time `json:"time"`
	// Sentence is the result, or the cause and the remedy; By is the stopping rule.
	Sentence string         `json:"answer"`
	By       string         `json:"by,omitempty"`
	Protocol string         `json:"protocol"`
	From     netip.AddrPort `json:"from"`
	To       netip.AddrPort `json:"to"`
	// such as "syn,ack"
	Flags string `json:"flags,omitempty"`
	// In is empty for a packet of the node itself, Out without an exit.
	In      string `json:"in,omitempty"`
	Out     string `json:"out,omitempty"`
	Verdict string `json:"verdict"`
	// the addresses at the last chain
	LastFrom netip.AddrPort `json:"lastFrom"`
	LastTo   netip.AddrPort `json:"lastTo"`
	Steps    []Step         `json:"steps"`

	// seen is the time of the last event, base the current base chain.
	id   uint32
	seen time.Time
	base string
	// The selecting chains of weft trace. over means that a later packet has the ID.
	selected []string
	over     bool
	// steps after maxSteps are missing
	cut bool
}

type collector struct {
	*asker
	load func() (*eval.Ruleset, error)
	// the table of this weft trace
	own   string
	print func(*Traced) error
	left  int
	// open is by ID, order has unprinted packets, oldest first.
	open  map[uint32]*Traced
	order []*Traced
	// the time of the last reload, and the number of lost events
	reloaded time.Time
	lost     int
}

// run prints packets until left is 0 or ctx ends.
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

// flush prints finished packets in order: an unfinished packet delays all later ones.
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

func (c *collector) add(e *kernel.TraceEvent) error {
	switch e.Type {
	case kernel.TraceOverrun:
		c.lost++
		return nil
	case kernel.TraceFailed:
		return e.Err
	}
	now, p := time.Now(), c.open[e.ID]
	// Other programs may trace too.
	selects := e.Type == kernel.TraceRule && strings.HasPrefix(e.Table.Name, c.own)
	if p != nil && (p.ended(now) || selects && slices.Contains(p.selected, e.Chain)) {
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

func (p *Traced) ended(now time.Time) bool {
	return p.over || p.Verdict != wordAccept || now.Sub(p.seen) > quiet
}

func (c *collector) step(p *Traced, e *kernel.TraceEvent) {
	// Only the first event at a base chain has headers.
	if len(e.Network) > 0 {
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

func hookName(family nft.Family, hook uint32) string {
	if family == nft.FamilyNetdev || int(hook) >= len(hooks) {
		return "ingress"
	}
	return hooks[hook]
}

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

func tcpFlags(b byte) string {
	var out []string
	for i, name := range []string{"fin", "syn", "rst", "psh", "ack", "urg", "ecn", "cwr"} {
		if b&(1<<i) != 0 {
			out = append(out, name)
		}
	}
	return strings.Join(out, ",")
}

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

func (c *collector) interfaceName(index uint32) string {
	i, err := c.host.link(int(index))
	if err != nil {
		return fmt.Sprintf("interface %d", index)
	}
	return i.Name
}

func (c *collector) chainOf(table nft.TableID, name string) *eval.Chain {
	if chain := c.chain(table, name); chain != nil {
		return chain
	}
	c.reload()
	return c.chain(table, name)
}

// rule reloads the ruleset if the rule is unknown, and may return nil.
func (c *collector) rule(table nft.TableID, name string, handle uint64) *eval.Rule {
	for range 2 {
		if chain := c.chain(table, name); chain != nil {
			rules := chain.Rules
			if chain.Load != nil {
				// A chain that is gone has no rules.
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
