package knft

import (
	"fmt"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/convert"
)

func (c *change) element(cmd *command) error {
	t, s, err := c.setOf(cmd.table, cmd.name)
	if err != nil {
		return err
	}
	elements, err := parseElements(cmd.rest)
	if err != nil {
		return err
	}
	for _, e := range elements {
		switch cmd.verb {
		case verbAdd, verbCreate:
			err = c.addElement(cmd, t, s, e)
		case verbDelete, verbDestroy:
			err = c.deleteElement(cmd, t, s, e.GetKey())
		default:
			err = fmt.Errorf("%s of an element: %w", cmd.verb, ErrUnsupported)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *change) addElement(cmd *command, t *table, s *set, e *weftv1.Element) error {
	packed, err := s.packed.Pack(convert.ElementOf(e))
	if err != nil {
		return err
	}
	id := packed.Key + packed.KeyEnd
	if s.packed.Verdict {
		if err := c.check(t, e.GetValue()); err != nil {
			return err
		}
	}
	if old := s.elements[id]; old != nil {
		was, err := s.packed.Pack(convert.ElementOf(old))
		if err != nil {
			return err
		}
		if cmd.verb == verbCreate || was.Data != packed.Data {
			return exists("element %s already exists in %s", clip(e.GetKey()), cmd.name)
		}
		// As in the kernel, the new timeout replaces the old, but the comment stays.
		if e.GetTimeout().AsDuration() == 0 || e.GetTimeout().AsDuration() == old.GetTimeout().AsDuration() {
			return nil
		}
		e.Comment = old.GetComment()
	} else if cmd.verb == verbCreate {
		if there, err := c.foreignElement(cmd, s, id); err != nil {
			return err
		} else if there {
			return exists("element %s already exists in %s: %v", clip(e.GetKey()), cmd.name, foreign(c.merged[cmd.table].othersOf(kindSet, cmd.name)))
		}
	}
	c.putElement(t, s, id, e)
	return nil
}

func (c *change) deleteElement(cmd *command, t *table, s *set, key string) error {
	id, err := s.id(key)
	if err != nil {
		return err
	}
	if s.elements[id] != nil {
		c.putElement(t, s, id, nil)
		return nil
	}
	if s.unknown {
		return fmt.Errorf("%w: elements of %s", ErrAdopted, cmd.name)
	}
	there, err := c.foreignElement(cmd, s, id)
	switch {
	case err != nil:
		return err
	case there:
		return foreign(c.merged[cmd.table].othersOf(kindSet, cmd.name))
	case cmd.verb == verbDestroy:
		return nil
	}
	return notFound("no element %s in %s", clip(key), cmd.name)
}

func (c *change) foreignElement(cmd *command, s *set, id string) (bool, error) {
	v, err := c.view(cmd.table, false)
	if err != nil || len(v.othersOf(kindSet, cmd.name)) == 0 {
		return false, err
	}
	if v, err = c.view(cmd.table, true); err != nil {
		return false, err
	}
	if d := c.touched[cmd.table][newItemID(kindSet, cmd.name)]; d != nil {
		if _, own := d.elements[id]; own {
			// the fragment's before this transaction
			return false, nil
		}
	}
	for _, e := range v.sets[cmd.name].GetSet().GetElements() {
		if other, err := s.id(e.GetKey()); err == nil && other == id {
			return true, nil
		}
	}
	return false, nil
}

func (c *change) putElement(t *table, s *set, id string, e *weftv1.Element) {
	key, touched := e.GetKey(), c.touch(t, itemID{kindSet, s.decl.GetName()})
	if e == nil {
		key = s.elements[id].GetKey()
	}
	assign(c, s.elements, id, e)
	if _, ok := touched.elements[id]; !ok {
		touched.elements[id] = key
	}
}
