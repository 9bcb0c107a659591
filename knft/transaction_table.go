package knft

import "fmt"

func (c *transaction) table(cmd *command) error {
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
		if err := c.unique(cmd, t != nil); err != nil {
			return err
		}
		c.addTable(cmd.table, comment)
		return nil
	case verbDelete, verbDestroy:
		if t == nil {
			return c.absent(cmd)
		}
		assign(c, c.content.tables, cmd.table, nil)
		c.whole = true
		return nil
	case verbFlush:
		if t == nil {
			_, err := c.hold(cmd.table)
			return err
		}
		for _, it := range t.items {
			if o, ok := it.(*chain); ok {
				c.flushChain(t, o)
			}
		}
		return nil
	default:
		return fmt.Errorf("%s of a table: %w", cmd.verb, ErrUnsupported)
	}
}
