package knft

import "github.com/weft-proxy/weft/nft"

// absent is for a deletion or flush of an undeclared object.
func (c *transaction) absent(cmd *command) error {
	v, err := c.view(cmd.table, false)
	if err != nil {
		return err
	}
	switch others := v.othersOf(cmd.kind, cmd.name); {
	case len(others) > 0 && cmd.verb == verbFlush:
		// The object's content belongs to other fragments.
		return nil
	case len(others) > 0:
		return foreign(others)
	case cmd.verb == verbDestroy:
		return nil
	}
	if cmd.kind == kindTable {
		return notFound("no such table %s", cmd.table)
	}
	return notFound("no such %s %s in table %s", cmd.kind, cmd.name, cmd.table)
}

func (c *transaction) unique(cmd *command, own bool) error {
	if cmd.verb != verbCreate {
		return nil
	}
	what, where := string(cmd.kind)+" "+cmd.name, " in table "+cmd.table.String()
	if cmd.kind == kindTable {
		what, where = "table "+cmd.table.String(), ""
	}
	if own {
		return exists("%s already exists%s", what, where)
	}
	v, err := c.view(cmd.table, false)
	if err != nil {
		return err
	}
	if others := v.othersOf(cmd.kind, cmd.name); len(others) > 0 {
		return exists("%s already exists%s: %v", what, where, foreign(others))
	}
	return nil
}

// elsewhere returns an error if no other fragment declares the object.
func (c *transaction) elsewhere(t *table, k kind, name string) (*view, error) {
	v, err := c.view(t.id, false)
	if err != nil {
		return nil, err
	}
	if len(v.othersOf(k, name)) == 0 {
		what := string(k)
		if k == kindSet {
			what = "set or map"
		}
		return nil, notFound("no such %s %s in table %s", what, clip(name), t.id)
	}
	return v, nil
}

// partOf makes a fragment without a part join the object; join returns an empty part.
func partOf[T any](c *transaction, id nft.TableID, item itemID, join func(*view) (*T, error)) (*table, *T, error) {
	t, err := c.hold(id)
	if err != nil {
		return nil, nil, err
	}
	if own, ok := t.items[item].(*T); ok {
		return t, own, nil
	}
	v, err := c.elsewhere(t, item.kind, item.name)
	if err != nil {
		return nil, nil, err
	}
	part, err := join(v)
	if err != nil {
		return nil, nil, err
	}
	c.put(t, item, part)
	return t, part, nil
}
