package knft

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/nft"
)

// transaction applies the commands of a transaction to the content; rollback undoes them.
type transaction struct {
	content *content
	merged  views
	// own rules by the kernel's handle
	handles map[nft.TableID]map[uint64]*weftv1.Rule

	// chains with a private copy of the rules
	edited map[*chain]bool
	undo   []func()
	// tables come or go, so the update is a snapshot
	whole   bool
	touched map[nft.TableID]map[itemID]*touched
}

// touched is the difference of an item: all, or elements by packed key, with their keys as text.
type touched struct {
	whole    bool
	elements map[string]string
}

// needed is the error for a missing merged table. The change is repeated with this table.
type needed struct {
	table nft.TableID
	// with the elements of sets
	elements bool
}

func (n *needed) Error() string { return "content of table " + n.table.String() + " is needed" }

func newTransaction(content *content, merged views) *transaction {
	return &transaction{
		content: content, merged: merged,
		touched: make(map[nft.TableID]map[itemID]*touched), edited: make(map[*chain]bool), handles: make(map[nft.TableID]map[uint64]*weftv1.Rule),
	}
}

func (c *transaction) apply(cmds []command) error {
	for id, v := range c.merged {
		if err := c.number(id, v); err != nil {
			return err
		}
	}
	for i := range cmds {
		if err := c.command(&cmds[i]); err != nil {
			c.rollback()
			if need := (*needed)(nil); errors.As(err, &need) {
				return err
			}
			return fmt.Errorf("%s: %w", &cmds[i], err)
		}
	}
	if what := c.content.unknown(); what != "" {
		c.rollback()
		return fmt.Errorf("%w: %s", ErrAdopted, what)
	}
	return nil
}

func (c *transaction) number(id nft.TableID, v *view) error {
	c.handles[id] = make(map[uint64]*weftv1.Rule)
	t := c.content.tables[id]
	if t == nil {
		return nil
	}
	for item, it := range t.items {
		o, ok := it.(*chain)
		if !ok || o.unknown {
			continue
		}
		own := v.ownRules(item.name)
		if len(own) != len(o.rules) {
			return fmt.Errorf("table %s chain %s: %w: it has %d rules there and %d here", id, item.name, ErrOutOfStep, len(own), len(o.rules))
		}
		for i, r := range own {
			c.handles[id][r.GetHandle()] = o.rules[i]
		}
	}
	return nil
}

func (c *transaction) command(cmd *command) error {
	switch cmd.kind {
	case kindTable:
		return c.table(cmd)
	case kindRule:
		return c.rule(cmd)
	case kindElement:
		return c.element(cmd)
	case kindChain, kindSet, kindMap, kindFlowtable, kindCounter:
		return c.declaration(cmd)
	default:
		return fmt.Errorf("unknown kind of object %q", cmd.kind)
	}
}

func (c *transaction) declaration(cmd *command) error {
	id := newItemID(cmd.kind, cmd.name)
	if cmd.verb == verbAdd || cmd.verb == verbCreate {
		t, err := c.hold(cmd.table)
		if err != nil {
			return err
		}
		it, err := parseDeclaration(cmd)
		if err != nil {
			return err
		}
		if err := checkPolicy(t, id, it); err != nil {
			return err
		}
		if err := c.unique(cmd, t.items[id] != nil); err != nil {
			return err
		}
		return c.declare(t, id, it)
	}
	t := c.content.tables[cmd.table]
	object := cmd.kind == kindFlowtable || cmd.kind == kindCounter
	switch {
	case cmd.rest != "" && !object:
		return fmt.Errorf("unexpected %s", clip(cmd.rest))
	case cmd.verb != verbDelete && cmd.verb != verbDestroy && (cmd.verb != verbFlush || object):
		return fmt.Errorf("%s of a %s: %w", cmd.verb, cmd.kind, ErrUnsupported)
	case t == nil || t.items[id] == nil:
		return c.absent(cmd)
	case cmd.verb != verbFlush:
		c.put(t, id, nil)
	case cmd.kind == kindChain:
		c.flushChain(t, t.chain(cmd.name))
	default:
		c.flushSet(t, t.set(cmd.name))
	}
	return nil
}

// declare adds an item, or updates an existing one as nft(8) does.
func (c *transaction) declare(t *table, id itemID, it item) error {
	switch o := it.(type) {
	case *chain:
		if old := t.chain(id.name); old != nil {
			return c.redeclareChain(t, old, o.decl)
		}
		if _, err := compiledChain(t.id, o.decl); err != nil {
			return err
		}
	case *set:
		if old := t.set(id.name); old != nil {
			return c.redeclareSet(t, old, o)
		}
	default:
		if t.items[id] != nil {
			return nil
		}
	}
	c.put(t, id, it)
	return nil
}

func (c *transaction) put(t *table, id itemID, it item) {
	assign(c, t.items, id, it)
	c.touch(t, id).whole = true
}

func (c *transaction) rollback() {
	for _, f := range slices.Backward(c.undo) {
		f()
	}
	c.undo = nil
}

func save[T any](c *transaction, p *T) {
	old := *p
	c.undo = append(c.undo, func() { *p = old })
}

func assign[K, V comparable](c *transaction, m map[K]V, key K, v V) {
	put := func(v V) {
		if v == *new(V) {
			delete(m, key)
		} else {
			m[key] = v
		}
	}
	old := m[key]
	put(v)
	c.undo = append(c.undo, func() { put(old) })
}

func (c *transaction) view(id nft.TableID, elements bool) (*view, error) {
	v, ok := c.merged[id]
	if !ok || elements && !v.elements {
		return nil, &needed{table: id, elements: elements}
	}
	return v, nil
}

func (c *transaction) touch(t *table, id itemID) *touched {
	all := c.touched[t.id]
	if all == nil {
		all = make(map[itemID]*touched)
		c.touched[t.id] = all
	}
	if all[id] == nil {
		all[id] = &touched{elements: make(map[string]string)}
	}
	return all[id]
}

// hold returns the fragment's part of a table, a new one if only other fragments have the table.
func (c *transaction) hold(id nft.TableID) (*table, error) {
	if t := c.content.tables[id]; t != nil {
		return t, nil
	}
	v, err := c.view(id, false)
	if err != nil {
		return nil, err
	}
	if len(v.othersOf(kindTable, "")) == 0 {
		return nil, notFound("no such table %s", id)
	}
	return c.addTable(id, ""), nil
}

func (c *transaction) addTable(id nft.TableID, comment string) *table {
	t := newTable(id)
	t.comment = comment
	assign(c, c.content.tables, id, t)
	c.whole = true
	return t
}

func (c *transaction) empty() bool { return !c.whole && len(c.touched) == 0 }

func (c *transaction) patch(fragment string) *weftv1.Patch {
	p := &weftv1.Patch{Fragment: fragment}
	for _, table := range sortedIDs(c.touched) {
		t := c.content.tables[table]
		change := &weftv1.TablePatch{Family: table.Family.String(), Name: table.Name}
		for _, id := range sortedItems(c.touched[table]) {
			switch it, d := t.items[id], c.touched[table][id]; {
			case it == nil:
				remove(change, id)
			case d.whole:
				put(change, it)
			default:
				change.Elements = append(change.Elements, d.patch(id.name, t.set(id.name)))
			}
		}
		p.Tables = append(p.Tables, change)
	}
	return p
}

func remove(p *weftv1.TablePatch, id itemID) {
	switch id.kind {
	case kindChain:
		p.DeleteChains = append(p.DeleteChains, id.name)
	case kindSet:
		p.DeleteSets = append(p.DeleteSets, id.name)
	case kindFlowtable:
		p.DeleteFlowtables = append(p.DeleteFlowtables, id.name)
	default:
		p.DeleteObjects = append(p.DeleteObjects, &weftv1.ObjectReference{Kind: string(id.kind), Name: id.name})
	}
}

func (d *touched) patch(name string, s *set) *weftv1.ElementPatch {
	p := &weftv1.ElementPatch{Set: name}
	for _, id := range slices.Sorted(maps.Keys(d.elements)) {
		if e := s.elements[id]; e != nil {
			p.Add = append(p.Add, e)
		} else {
			p.Remove = append(p.Remove, d.elements[id])
		}
	}
	return p
}
