package knft

import (
	"fmt"
	"slices"
	"syscall"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/convert"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/object"
)

// checkPolicy precedes the check for existence, as in the kernel.
func checkPolicy(t *table, id itemID, it item) error {
	c, ok := it.(*chain)
	if old := t.chain(id.name); ok && old != nil && c.decl.GetPolicy() != "" && old.decl.GetHook() == "" {
		return fmt.Errorf("chain %s has no hook, and so no policy: %w", id.name, syscall.EOPNOTSUPP)
	}
	return nil
}

// redeclareChain can change only the policy of an existing chain, as in the kernel.
func (c *transaction) redeclareChain(t *table, o *chain, d *weftv1.Chain) error {
	if d.GetHook() == "" {
		return nil
	}
	was, err := compiledChain(t.id, o.decl)
	if err != nil {
		return err
	}
	want, err := compiledChain(t.id, d)
	if err != nil {
		return err
	}
	switch a, b := was.Base, want.Base; {
	case a == nil:
		return exists("chain %s already exists in table %s, without a hook", d.GetName(), t.id)
	case a.Hook != b.Hook || a.Priority != b.Priority || a.Device != b.Device:
		return fmt.Errorf("chain %s has another hook, priority or device: %w", d.GetName(), syscall.EOPNOTSUPP)
	case a.Type != b.Type:
		return exists("chain %s already exists in table %s, with type %s", d.GetName(), t.id, o.decl.GetType())
	case d.GetPolicy() == "" || a.Drop == b.Drop:
		return nil
	}
	save(c, &o.decl)
	o.decl = client.Declaration(o.decl)
	o.decl.Policy = d.GetPolicy()
	c.touch(t, itemID{kindChain, d.GetName()}).whole = true
	return nil
}

func compiledChain(id nft.TableID, d *weftv1.Chain) (*object.Chain, error) {
	declared := convert.ChainOf(d)
	return object.CompileChain(id.Family, &declared)
}

func (c *transaction) flushChain(t *table, o *chain) {
	if len(o.rules) == 0 && !o.unknown {
		return
	}
	c.edit(t, o)
	o.rules, o.unknown = nil, false
}

func (c *transaction) edit(t *table, o *chain) {
	c.touch(t, itemID{kindChain, o.decl.GetName()}).whole = true
	if c.edited[o] {
		return
	}
	save(c, o)
	o.rules = slices.Clone(o.rules)
	c.edited[o] = true
}

func (c *transaction) chainOf(id nft.TableID, name string) (*table, *chain, error) {
	return partOf(c, id, itemID{kindChain, name}, func(v *view) (*chain, error) {
		return &chain{decl: client.Declaration(v.chains[name].GetChain())}, nil
	})
}
