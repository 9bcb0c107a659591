package knft

import (
	"errors"
	"fmt"
	"slices"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// rule makes an operation on a rule.
func (c *change) rule(cmd *command) error {
	at, r, err := parseRule(cmd.rest)
	if err != nil {
		return err
	}
	switch cmd.verb {
	case verbAdd, verbInsert:
		return c.addRule(cmd, at, r)
	case verbReplace, verbDelete, verbDestroy:
		return c.changeRule(cmd, at, r)
	default:
		return fmt.Errorf("%s of a rule: %w", cmd.verb, ErrUnsupported)
	}
}

// addRule puts a rule at one of the ends, or after (add) or before (insert)
// another one.
func (c *change) addRule(cmd *command, at position, r *weftv1.Rule) error {
	if r.GetText() == "" {
		return errors.New("no rule given")
	}
	t, o, err := c.chainOf(cmd.table, cmd.name)
	if err != nil {
		return err
	}
	if err := c.check(t, r.GetText()); err != nil {
		return err
	}
	place := len(o.rules)
	if cmd.verb == verbInsert {
		place = 0
	}
	if at.index >= 0 || at.handle != 0 {
		if place, err = c.place(cmd, o, at); err != nil {
			return err
		}
		if cmd.verb == verbAdd {
			place++
		}
	}
	c.edit(t, o)
	o.rules = slices.Insert(o.rules, place, r)
	return nil
}

// changeRule replaces or deletes the rule with a handle.
func (c *change) changeRule(cmd *command, at position, r *weftv1.Rule) error {
	t, o, err := c.chainOf(cmd.table, cmd.name)
	if err != nil {
		return err
	}
	if at.handle == 0 {
		return errors.New("no handle given")
	}
	place, err := c.place(cmd, o, at)
	if err != nil {
		if missing := (*conditionError)(nil); cmd.verb == verbDestroy && errors.As(err, &missing) {
			return nil
		}
		return err
	}
	if cmd.verb != verbReplace {
		c.edit(t, o)
		o.rules = slices.Delete(o.rules, place, place+1)
		return nil
	}
	if r.GetText() == "" {
		return errors.New("no rule given")
	}
	if err := c.check(t, r.GetText()); err != nil {
		return err
	}
	c.edit(t, o)
	o.rules[place] = r
	return nil
}

// place finds the fragment's rule with a handle or at an index of the merged
// chain.
func (c *change) place(cmd *command, o *chain, at position) (int, error) {
	v, err := c.view(cmd.table, false)
	if err != nil {
		return 0, err
	}
	if o.unknown {
		return 0, fmt.Errorf("%w: rules of chain %s", ErrAdopted, cmd.name)
	}
	if at.handle != 0 {
		if own := c.handles[cmd.table][at.handle]; own != nil {
			if i := slices.Index(o.rules, own); i >= 0 {
				return i, nil
			}
		}
		for _, r := range v.chains[cmd.name].GetRules() {
			if r.GetHandle() == at.handle && r.GetFragment().Text() != v.own {
				return 0, foreign([]string{r.GetFragment().Text()})
			}
		}
		return 0, notFound("no rule with handle %d in chain %s", at.handle, cmd.name)
	}
	before, after := v.around(cmd.name)
	switch i := at.index - before; {
	case i >= 0 && i < len(o.rules):
		return i, nil
	case at.index >= before+len(o.rules)+after:
		return 0, notFound("no rule with index %d in chain %s", at.index, cmd.name)
	default:
		return 0, fmt.Errorf("rule %d of chain %s: %w", at.index, cmd.name, foreign(v.othersOf(kindChain, cmd.name)))
	}
}
