package knft

import "fmt"

// table makes an operation on a table.
func (c *change) table(cmd *command) error {
	comment, err := parseTable(cmd.rest)
	if err != nil {
		return err
	}
	t := c.content.tables[cmd.table]
	switch cmd.verb {
	case verbAdd:
		if t == nil {
			c.addTable(cmd.table, comment)
		}
		return nil
	case verbCreate:
		return c.createTable(cmd, comment)
	case verbDelete, verbDestroy:
		if t == nil {
			return c.absentTable(cmd)
		}
		c.deleteTable(t)
		return nil
	case verbFlush:
		if t == nil {
			_, err := c.hold(cmd.table)
			return err
		}
		for _, o := range t.chains {
			c.flushChain(t, o)
		}
		return nil
	default:
		return fmt.Errorf("%s of a table: %w", cmd.verb, ErrUnsupported)
	}
}

func (c *change) createTable(cmd *command, comment string) error {
	if c.content.tables[cmd.table] != nil {
		return exists("table %s already exists", cmd.table)
	}
	v, err := c.view(cmd.table, false)
	if err != nil {
		return err
	}
	if others := v.others(); len(others) > 0 {
		return exists("table %s already exists: %v", cmd.table, foreign(others))
	}
	c.addTable(cmd.table, comment)
	return nil
}

// absentTable answers a deletion of a table in which the fragment has no part.
func (c *change) absentTable(cmd *command) error {
	v, err := c.view(cmd.table, false)
	switch {
	case err != nil:
		return err
	case len(v.others()) > 0:
		return foreign(v.others())
	case cmd.verb == verbDestroy:
		return nil
	}
	return notFound("no such table %s", cmd.table)
}

// deleteTable gives up the fragment's part of a table.
func (c *change) deleteTable(t *table) {
	delete(c.content.tables, t.id)
	c.undo = append(c.undo, func() { c.content.tables[t.id] = t })
	c.whole = true
}
