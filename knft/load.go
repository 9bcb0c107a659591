package knft

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/nft"
	nftset "github.com/weft-proxy/weft/nft/set"
)

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

// read uses the merged tables after a restart of the aggregator, because Get then has only names
// and elements.
func (a *Adapter) read(ctx context.Context, resp *weftv1.GetFragmentResponse) (*content, error) {
	out, adopted := newContent(), resp.GetStatus().GetState() == weftv1.FragmentStatus_STATE_ADOPTED
	out.partial = adopted
	for _, m := range resp.GetFragment().GetTables() {
		id, err := newTableID(m.GetFamily(), m.GetName())
		if err != nil {
			return nil, err
		}
		var v *view
		if adopted {
			if v, err = a.view(ctx, &needed{table: id}); err != nil {
				return nil, err
			}
		}
		if out.tables[id], err = readTable(id, m, v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// readTable has a v only for a fragment from before a restart; parts missing in v are unknown.
func readTable(id nft.TableID, m *weftv1.Table, v *view) (*table, error) {
	t := newTable(id)
	t.comment = m.GetComment()
	for _, o := range m.GetObjects() {
		t.items[itemID{kind(o.GetKind()), o.GetName()}] = proto.CloneOf(o)
	}
	for _, f := range m.GetFlowtables() {
		t.items[itemID{kindFlowtable, f.GetName()}] = proto.CloneOf(f)
	}
	for _, c := range m.GetChains() {
		o := &chain{decl: client.Declaration(c), rules: c.GetRules()}
		if v != nil {
			if merged := v.chains[c.GetName()]; merged != nil {
				o.decl = client.Declaration(merged.GetChain())
			}
			o.rules, o.unknown = nil, len(v.ownRules(c.GetName())) > 0
		}
		t.items[itemID{kindChain, c.GetName()}] = o
	}
	for i, s := range slices.Concat(m.GetSets(), m.GetMaps()) {
		name, isMap, decl := s.GetName(), i >= len(m.GetSets()), s
		if v != nil {
			decl = v.sets[name].GetSet()
		}
		o, err := newSet(id.Family, client.Declaration(decl), isMap)
		if err == nil {
			err = o.put(s.GetElements())
		}
		switch {
		case v == nil && err != nil:
			return nil, err
		case v == nil:
			o.startAll(time.Now())
		case err != nil:
			o = makeSet(client.Declaration(s), &nftset.Set{Name: name, Map: isMap})
			o.adopted, o.unknown = true, true
		default:
			// The owners of a shared set's elements are unknown.
			o.adopted, o.unknown = true, len(v.othersOf(kindSet, name)) > 0
		}
		t.items[itemID{kindSet, name}] = o
	}
	return t, nil
}

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

// identity returns "publisher/name". The publisher is empty until the fragment exists.
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
