package chaos

import (
	"fmt"
	"strings"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// keeper is a NAT table of somebody else. Without any NAT chain and any rule that
// uses conntrack in the namespace the kernel no longer tracks and translates the
// connections that it knows, and no aggregator could bring the stream back: where a foreign process deletes the
// service's table (with ownership off, or while weft is down) the stream
// survives because another user of NAT is there, as on every node with a
// container runtime. With ownership on and weft running it is not needed.
const keeper = "table ip keeper {\n\tchain post {\n\t\ttype nat hook postrouting priority srcnat; policy accept;\n\t\tip saddr 10.206.0.0/16 masquerade\n\t}\n}\n"

// foreign is the process that is not weft's: nft(8), run anew for each change.
type foreign struct {
	// tables are the foreign process's own, as they must stay.
	tables ruleset
}

// nft runs a script in the node's namespace.
func (c *conductor) nft(script string) error {
	_, err := c.node.Output(script, "nft", "-f", "-")
	outcome := "done"
	if err != nil {
		outcome = err.Error()
	}
	c.note("nft %q: %s", script, outcome)
	return err
}

// reset makes the foreign process's own tables anew, with an element that
// changes.
func (fo *foreign) reset(c *conductor, prefix string) {
	tables := keeper + fmt.Sprintf("table ip alien {\n\tset s {\n\t\ttype ipv4_addr\n\t\telements = { 10.204.0.%d }\n\t}\n}\n", c.rng.IntN(200))
	if err := c.nft(prefix + tables); err != nil {
		c.fatal("%v", err)
	}
	// They are written as nft lists them. Listing them now would not do: nft 1.0.6
	// says things twice when somebody commits while it reads.
	var err error
	if fo.tables, err = parseListing(tables); err != nil {
		c.fatal("%v", err)
	}
}

// interfere changes what is not its own, while the aggregator runs.
func (c *conductor) interfere() {
	c.sum.foreign++
	if c.owned {
		c.foreign.forbidden(c)
		return
	}
	if c.rng.IntN(2) == 0 {
		c.foreign.damage(c)
		return
	}
	// Alone, to see how long a repair takes.
	c.quiet()
	want := c.expected()
	c.foreign.damage(c)
	began := time.Now()
	for c.compare(want) != "" {
		if time.Since(began) > patience {
			c.fatal("after %v what a foreign process changed is not repaired:\n%s", patience, c.compare(want))
		}
		c.pump(time.After(2 * time.Millisecond))
	}
	c.sum.repaired(time.Since(began))
}

// forbidden does what the kernel must refuse, as weft owns the tables.
func (fo *foreign) forbidden(c *conductor) {
	if c.rng.IntN(4) == 0 {
		// A flush passes by what is owned. It takes the keeper along: weft's
		// own NAT chain keeps the stream alive.
		fo.reset(c, "flush ruleset\n")
		return
	}
	script := fo.script(c)
	err := c.nft(script)
	switch {
	case err == nil:
		c.fatal("a foreign process may do this to an owned table: %s", script)
	case strings.Contains(err.Error(), "Operation not permitted"):
		c.sum.forbidden++
	case strings.Contains(err.Error(), "No such file or directory"):
		// An update that is on its way has taken it away.
	default:
		c.fatal("want the kernel's refusal: %v", err)
	}
}

// damage changes one of weft's tables.
func (fo *foreign) damage(c *conductor) {
	if c.nft(fo.script(c)) == nil {
		c.sum.damages++
		c.damaged, c.unsteady = true, true
	}
}

// wipe deletes all that weft has, as a reboot does.
func (fo *foreign) wipe(c *conductor) { fo.reset(c, "flush ruleset\n") }

// script draws a change of one of weft's tables.
func (fo *foreign) script(c *conductor) string {
	merged := merge(c.fragments())
	ids := sorted(merged)
	id := ids[c.rng.IntN(len(ids))]
	var chains, sets, elements []string
	for _, l := range merged[id] {
		what, _, _ := strings.Cut(l, " = ")
		words := strings.SplitN(what, " ", 4)
		switch {
		case len(words) == 2 && words[0] == "chain":
			chains = append(chains, words[1])
		case len(words) == 2:
			sets = append(sets, words[1])
		case len(words) == 4 && words[2] == "element":
			elements = append(elements, words[1]+" { "+words[3]+" }")
		}
	}
	draw := func(from []string) string { return from[c.rng.IntN(len(from))] }
	switch n := c.rng.IntN(9); {
	case n == 0:
		return "delete table " + id
	case n == 1:
		return "flush table " + id
	case n == 2 && len(chains) > 0:
		return "flush chain " + id + " " + draw(chains)
	case n == 3 && len(chains) > 0:
		return "add rule " + id + " " + draw(chains) + " ip saddr 10.205.0.1 counter comment \"alien\""
	case n == 4 && len(chains) > 0:
		return "insert rule " + id + " " + draw(chains) + " ip saddr 10.205.0.2 drop"
	case n == 5 && len(sets) > 0:
		return "flush set " + id + " " + draw(sets)
	case n == 6 && len(elements) > 0:
		return "delete element " + id + " " + draw(elements)
	case n == 7:
		return "add chain " + id + " alien"
	default:
		return "add set " + id + " alien { type ipv4_addr; elements = { 10.205.0.3 }; }"
	}
}

// checkDurable compares the kernel after everything was lost and no publisher
// has come back: it holds what is durable.
func (c *conductor) checkDurable() {
	c.t.Helper()
	var durable []held
	for _, h := range c.fragments() {
		if h.content != nil && h.content.lifetime == weftv1.Lifetime_LIFETIME_DURABLE {
			durable = append(durable, h)
		}
	}
	want := merge(durable)
	for id, lines := range c.foreign.tables {
		want[id] = lines
	}
	c.sum.durable += len(durable)
	if d := c.compare(want); d != "" {
		c.fatal("after everything was lost the %d durable fragments are not back:\n%s", len(durable), d)
	}
}
