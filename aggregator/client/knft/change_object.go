package knft

// declareObject adds or creates a counter or flowtable. As in nft(8), one that is
// there keeps its declaration.
func (c *change) declareObject(cmd *command, t *table, it item) error {
	id := itemID{cmd.kind, cmd.name}
	there := t.items[id] != nil
	if err := c.unique(cmd, there); err != nil || there {
		return err
	}
	c.put(t, id, it)
	return nil
}
