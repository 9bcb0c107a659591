package knft

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/nft"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// load reads back what the aggregator has of the fragment, once.
func (a *Adapter) load(ctx context.Context) error {
	if a.loaded {
		return nil
	}
	resp, err := a.client.Get(ctx, "", a.cfg.Fragment)
	found := newContent()
	switch {
	case errors.Is(err, client.ErrNotFound):
	case err != nil:
		return fmt.Errorf("read the fragment back: %w", err)
	default:
		a.publisher = resp.GetStatus().GetFragment().GetPublisher()
		if found, err = a.read(ctx, resp); err != nil {
			return fmt.Errorf("read the fragment back: %w", err)
		}
	}
	a.committed = err == nil
	a.published, a.loaded = false, true
	a.mu.Lock()
	defer a.mu.Unlock()
	a.content = found
	return nil
}

// read turns the answer of Get into content. Of a fragment from before a restart of
// the aggregator it has the names and the elements: what else is known comes from
// the merged tables.
func (a *Adapter) read(ctx context.Context, resp *weftv1.GetFragmentResponse) (*content, error) {
	out, adopted := newContent(), resp.GetStatus().GetState() == weftv1.FragmentStatus_STATE_ADOPTED
	out.partial = adopted
	for _, m := range resp.GetFragment().GetTables() {
		id, err := newTableID(m.GetFamily(), m.GetName())
		if err != nil {
			return nil, err
		}
		if adopted {
			v, err := a.view(ctx, &needed{table: id})
			if err != nil {
				return nil, err
			}
			out.tables[id] = readAdopted(id, m, v)
			continue
		}
		if out.tables[id], err = readTable(id, m); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// readTable turns a table of the wire into one of the content.
func readTable(id nft.TableID, m *weftv1.Table) (*table, error) {
	t := newTable(id)
	t.comment = m.GetComment()
	t.readObjects(m)
	for _, c := range m.GetChains() {
		t.chains[c.GetName()] = &chain{decl: client.Declaration(c), rules: c.GetRules()}
	}
	for i, s := range slices.Concat(m.GetSets(), m.GetMaps()) {
		o, err := newSet(id.Family, client.Declaration(s), i >= len(m.GetSets()))
		if err != nil {
			return nil, err
		}
		if err := o.put(s.GetElements()); err != nil {
			return nil, err
		}
		o.startAll(time.Now())
		t.sets[s.GetName()] = o
	}
	return t, nil
}

// readAdopted is readTable for a fragment from before a restart. What it cannot
// tell it marks as unknown.
func readAdopted(id nft.TableID, m *weftv1.Table, v *view) *table {
	t := newTable(id)
	t.comment = m.GetComment()
	t.readObjects(m)
	for _, c := range m.GetChains() {
		o := &chain{decl: client.Declaration(c)}
		if merged := v.chains[c.GetName()]; merged != nil {
			o.decl = client.Declaration(merged.GetChain())
		}
		o.unknown = len(v.ownRules(c.GetName())) > 0
		t.chains[c.GetName()] = o
	}
	for i, s := range slices.Concat(m.GetSets(), m.GetMaps()) {
		name, isMap := s.GetName(), i >= len(m.GetSets())
		o, err := newSet(id.Family, client.Declaration(v.sets[name].GetSet()), isMap)
		if err == nil {
			err = o.put(s.GetElements())
		}
		if err != nil {
			o = &set{decl: client.Declaration(s), packed: &nftset.Set{Name: name, Map: isMap}, elements: map[string]*weftv1.Element{}, unknown: true}
		}
		// Whose elements those of a shared set are is not known.
		o.adopted, o.unknown = true, o.unknown || len(v.othersOf(kindSet, name)) > 0
		t.sets[name] = o
	}
	return t
}

// view asks the aggregator for a merged table.
func (a *Adapter) view(ctx context.Context, need *needed) (*view, error) {
	own, err := a.identity(ctx)
	if err != nil {
		return nil, err
	}
	resp, err := a.client.GetTable(ctx, &weftv1.GetTableRequest{Family: need.table.Family.String(), Name: need.table.Name, Terse: !need.elements})
	if err != nil && !errors.Is(err, client.ErrNotFound) {
		return nil, err
	}
	return newView(own, resp, need.elements), nil
}

// identity returns the fragment as merged tables name it, "publisher/name". As long
// as there is none the publisher is left out, which no other fragment does.
func (a *Adapter) identity(ctx context.Context) (string, error) {
	if a.publisher == "" && a.committed {
		resp, err := a.client.Get(ctx, "", a.cfg.Fragment)
		if err != nil {
			return "", err
		}
		a.publisher = resp.GetStatus().GetFragment().GetPublisher()
	}
	return a.publisher + "/" + a.cfg.Fragment, nil
}
