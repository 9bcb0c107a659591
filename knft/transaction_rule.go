package knft

import (
	"errors"
	"fmt"
	"slices"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

func (c *transaction) rule(cmd *command) error {
	at, r, err := parseRule(cmd.rest)
	if err != nil {
		return err
	}
	adding, put := cmd.verb == verbAdd || cmd.verb == verbInsert, []*weftv1.Rule{r}
	switch cmd.verb {
	case verbAdd, verbInsert, verbReplace:
		if r.GetText() == "" {
			return errors.New("no rule given")
		}
	case verbDelete, verbDestroy:
		put = nil
	default:
		return fmt.Errorf("%s of a rule: %w", cmd.verb, ErrUnsupported)
	}
	t, o, err := c.chainOf(cmd.table, cmd.name)
	if err != nil {
		return err
	}
	for _, r := range put {
		if err := c.check(t, r.GetText()); err != nil {
			return err
		}
	}
	first := len(o.rules)
	switch {
	case !adding && at.handle == 0:
		return errors.New("no handle given")
	case at.index >= 0 || at.handle != 0:
		first, err = c.place(cmd, o, at)
		if missing := (*conditionError)(nil); cmd.verb == verbDestroy && errors.As(err, &missing) {
			return nil
		}
		if err != nil {
			return err
		}
		if cmd.verb == verbAdd {
			first++
		}
	case cmd.verb == verbInsert:
		first = 0
	}
	end := first
	if !adding {
		end++
	}
	c.edit(t, o)
	o.rules = slices.Replace(o.rules, first, end, put...)
	return nil
}

func (c *transaction) place(cmd *command, o *chain, at position) (int, error) {
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
