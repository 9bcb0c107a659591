package knft

import weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"

// declareObject adds or creates a counter or flowtable. As in nft(8), one that is
// there keeps its declaration.
func (c *change) declareObject(cmd *command, t *table, parsed *weftv1.Table) error {
	id := itemID{cmd.kind, cmd.name}
	there := t.items[id] != nil
	if err := c.unique(cmd, there); err != nil || there {
		return err
	}
	if cmd.kind == kindCounter {
		c.put(t, id, parsed.GetObjects()[0])
	} else {
		c.put(t, id, parsed.GetFlowtables()[0])
	}
	return nil
}
