package knft

import (
	"fmt"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/convert"
)

// elements changes elements of a set for a command.
type elements struct {
	*transaction
	cmd *command
	t   *table
	s   *set
}

func (c *transaction) element(cmd *command) error {
	t, s, err := c.setOf(cmd.table, cmd.name)
	if err != nil {
		return err
	}
	all, err := parseElements(cmd.rest)
	if err != nil {
		return err
	}
	of := elements{c, cmd, t, s}
	for _, e := range all {
		switch cmd.verb {
		case verbAdd, verbCreate:
			err = of.add(e)
		case verbDelete, verbDestroy:
			err = of.remove(e.GetKey())
		default:
			err = fmt.Errorf("%s of an element: %w", cmd.verb, ErrUnsupported)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *elements) add(e *weftv1.Element) error {
	packed, err := c.s.packed.Pack(convert.ElementOf(e))
	if err != nil {
		return err
	}
	id := packed.Key + packed.KeyEnd
	if c.s.packed.Verdict {
		if err := c.check(c.t, e.GetValue()); err != nil {
			return err
		}
	}
	if old := c.s.elements[id]; old != nil {
		was, err := c.s.packed.Pack(convert.ElementOf(old))
		if err != nil {
			return err
		}
		if c.cmd.verb == verbCreate || was.Data != packed.Data {
			return exists("element %s already exists in %s", clip(e.GetKey()), c.cmd.name)
		}
		// As in the kernel, the new timeout replaces the old, but the comment stays.
		if e.GetTimeout().AsDuration() == 0 || e.GetTimeout().AsDuration() == old.GetTimeout().AsDuration() {
			return nil
		}
		e.Comment = old.GetComment()
	} else if c.cmd.verb == verbCreate {
		if there, err := c.foreign(id); err != nil {
			return err
		} else if there {
			return exists("element %s already exists in %s: %v", clip(e.GetKey()), c.cmd.name, foreign(c.merged[c.cmd.table].othersOf(kindSet, c.cmd.name)))
		}
	}
	c.put(id, e)
	return nil
}

func (c *elements) remove(key string) error {
	id, err := c.s.id(key)
	if err != nil {
		return err
	}
	if c.s.elements[id] != nil {
		c.put(id, nil)
		return nil
	}
	if c.s.unknown {
		return fmt.Errorf("%w: elements of %s", ErrAdopted, c.cmd.name)
	}
	there, err := c.foreign(id)
	switch {
	case err != nil:
		return err
	case there:
		return foreign(c.merged[c.cmd.table].othersOf(kindSet, c.cmd.name))
	case c.cmd.verb == verbDestroy:
		return nil
	}
	return notFound("no element %s in %s", clip(key), c.cmd.name)
}

func (c *elements) foreign(id string) (bool, error) {
	v, err := c.view(c.cmd.table, false)
	if err != nil || len(v.othersOf(kindSet, c.cmd.name)) == 0 {
		return false, err
	}
	if v, err = c.view(c.cmd.table, true); err != nil {
		return false, err
	}
	if d := c.touched[c.cmd.table][newItemID(kindSet, c.cmd.name)]; d != nil {
		if _, own := d.elements[id]; own {
			// the fragment's before this transaction
			return false, nil
		}
	}
	for _, e := range v.sets[c.cmd.name].GetSet().GetElements() {
		if other, err := c.s.id(e.GetKey()); err == nil && other == id {
			return true, nil
		}
	}
	return false, nil
}

func (c *elements) put(id string, e *weftv1.Element) {
	key, touched := e.GetKey(), c.touch(c.t, itemID{kindSet, c.s.decl.GetName()})
	if e == nil {
		key = c.s.elements[id].GetKey()
	}
	assign(c.transaction, c.s.elements, id, e)
	if _, ok := touched.elements[id]; !ok {
		touched.elements[id] = key
	}
}
