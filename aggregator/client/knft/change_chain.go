package knft

import (
	"fmt"
	"slices"
	"syscall"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/object"
)

// chain makes an operation on a chain.
func (c *change) chain(cmd *command) error {
	if cmd.verb == verbAdd || cmd.verb == verbCreate {
		return c.declareChain(cmd)
	}
	if cmd.rest != "" {
		return fmt.Errorf("unexpected %s", clip(cmd.rest))
	}
	t := c.content.tables[cmd.table]
	var o *chain
	if t != nil {
		o = t.chains[cmd.name]
	}
	switch {
	case cmd.verb == verbFlush && o != nil:
		c.flushChain(t, o)
		return nil
	case (cmd.verb == verbDelete || cmd.verb == verbDestroy) && o != nil:
		delete(t.chains, cmd.name)
		c.undo = append(c.undo, func() { t.chains[cmd.name] = o })
		c.touch(t.id).chains[cmd.name] = true
		return nil
	case cmd.verb != verbFlush && cmd.verb != verbDelete && cmd.verb != verbDestroy:
		return fmt.Errorf("%s of a chain: %w", cmd.verb, ErrUnsupported)
	}
	v, err := c.view(cmd.table, false)
	if err != nil {
		return err
	}
	switch others := v.othersOfChain(cmd.name); {
	case len(others) > 0 && cmd.verb == verbFlush:
		// None of the rules are this fragment's.
		return nil
	case len(others) > 0:
		return foreign(others)
	case cmd.verb == verbDestroy:
		return nil
	}
	return notFound("no such chain %s in table %s", cmd.name, cmd.table)
}

// declareChain adds or creates a chain.
func (c *change) declareChain(cmd *command) error {
	t, err := c.hold(cmd.table)
	if err != nil {
		return err
	}
	d, err := parseChain(cmd)
	if err != nil {
		return err
	}
	if o := t.chains[cmd.name]; o != nil {
		switch {
		case d.GetPolicy() != "" && o.decl.GetHook() == "":
			return fmt.Errorf("chain %s has no hook, and so no policy: %w", cmd.name, syscall.EOPNOTSUPP)
		case cmd.verb == verbCreate:
			return exists("chain %s already exists in table %s", cmd.name, cmd.table)
		}
		return c.redeclareChain(t, o, d)
	}
	if cmd.verb == verbCreate {
		v, err := c.view(cmd.table, false)
		if err != nil {
			return err
		}
		if others := v.othersOfChain(cmd.name); len(others) > 0 {
			return exists("chain %s already exists in table %s: %v", cmd.name, cmd.table, foreign(others))
		}
	}
	if _, err := compiledChain(cmd.table, d); err != nil {
		return err
	}
	c.addChain(t, d)
	return nil
}

// addChain gives the fragment a chain.
func (c *change) addChain(t *table, d *weftv1.Chain) *chain {
	o, name := &chain{decl: d}, d.GetName()
	t.chains[name] = o
	c.undo = append(c.undo, func() { delete(t.chains, name) })
	c.touch(t.id).chains[name] = true
	return o
}

// redeclareChain adds a chain that is there: as in the kernel, that can change
// the policy, and nothing else.
func (c *change) redeclareChain(t *table, o *chain, d *weftv1.Chain) error {
	if d.GetHook() == "" {
		return nil
	}
	was, err := compiledChain(t.id, o.decl)
	if err != nil {
		return err
	}
	want, err := compiledChain(t.id, d)
	if err != nil {
		return err
	}
	switch a, b := was.Base, want.Base; {
	case a == nil:
		return exists("chain %s already exists in table %s, without a hook", d.GetName(), t.id)
	case a.Hook != b.Hook || a.Priority != b.Priority || a.Device != b.Device:
		return fmt.Errorf("chain %s has another hook, priority or device: %w", d.GetName(), syscall.EOPNOTSUPP)
	case a.Type != b.Type:
		return exists("chain %s already exists in table %s, with type %s", d.GetName(), t.id, o.decl.GetType())
	case d.GetPolicy() == "" || a.Drop == b.Drop:
		return nil
	}
	old := o.decl
	o.decl = copyChain(old)
	o.decl.Policy = d.GetPolicy()
	c.undo = append(c.undo, func() { o.decl = old })
	c.touch(t.id).chains[d.GetName()] = true
	return nil
}

// compiledChain compiles a declaration.
func compiledChain(id nft.TableID, d *weftv1.Chain) (*object.Chain, error) {
	return object.CompileChain(id.Family, &nft.Chain{
		Name: d.GetName(), Type: d.GetType(), Hook: d.GetHook(), Priority: d.GetPriority(), Policy: d.GetPolicy(), Device: d.GetDevice(), Comment: d.GetComment(),
	})
}

// flushChain removes the fragment's rules from a chain.
func (c *change) flushChain(t *table, o *chain) {
	if len(o.rules) == 0 && !o.unknown {
		return
	}
	c.edit(t, o)
	o.rules, o.unknown = nil, false
}

// edit makes a chain's rules ready to be changed in place.
func (c *change) edit(t *table, o *chain) {
	c.touch(t.id).chains[o.decl.GetName()] = true
	if c.edited[o] {
		return
	}
	rules, unknown := o.rules, o.unknown
	c.undo = append(c.undo, func() { o.rules, o.unknown = rules, unknown })
	o.rules = slices.Clone(rules)
	c.edited[o] = true
}

// chainOf returns the fragment's part of a chain, which it joins where another
// fragment has declared it.
func (c *change) chainOf(id nft.TableID, name string) (*table, *chain, error) {
	t, err := c.hold(id)
	if err != nil {
		return nil, nil, err
	}
	if o := t.chains[name]; o != nil {
		return t, o, nil
	}
	v, err := c.view(id, false)
	if err != nil {
		return nil, nil, err
	}
	if len(v.othersOfChain(name)) == 0 {
		return nil, nil, notFound("no such chain %s in table %s", name, id)
	}
	return t, c.addChain(t, copyChain(v.chains[name].GetChain())), nil
}
