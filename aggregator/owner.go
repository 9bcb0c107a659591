package aggregator

import (
	"context"
	"fmt"
	"strings"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
)

// Owner says which fragments an object of the kernel comes from, in merge order.
// What was there before a restart and that no fragment is known for has an owner
// without a name.
//
// Possible errors: ErrInvalidName (the family, or an element's key), ErrProtocol
// (a request that names no one object), ErrNoObject, ErrStandby, ErrStopped,
// ctx's.
func (a *Aggregator) Owner(ctx context.Context, req *weftv1.OwnerRequest) (*weftv1.OwnerResponse, error) {
	id, err := tableID(req.GetFamily(), req.GetTable())
	if err != nil {
		return nil, err
	}
	if err := checkOwnerRequest(req); err != nil {
		return nil, err
	}
	q := ownerQuery{id: id, req: req}
	switch {
	case req.GetObject() != nil:
		ref := admission.ObjectRef(req.GetObject())
		err = a.ask(ctx, func(w *writer) { q.owners, q.object, q.found = w.state.OwnersOfObject(id, ref) })
	case req.GetKey() != "":
		return a.elementOwner(ctx, &q)
	case req.GetSet() != "":
		err = a.ask(ctx, func(w *writer) { q.owners, q.set, q.found = w.state.OwnersOfSet(id, req.GetSet()) })
	case req.GetHandle() != 0:
		var owner desired.Owned
		err = a.ask(ctx, func(w *writer) { owner, q.found = w.state.OwnerOfRule(id, req.GetChain(), req.GetHandle()) })
		q.owners = []desired.Owned{owner}
	case req.GetChain() != "":
		err = a.ask(ctx, func(w *writer) { q.owners, q.chain, q.found = w.state.OwnersOfChain(id, req.GetChain()) })
	default:
		err = a.ask(ctx, func(w *writer) { q.owners, q.found = w.state.OwnersOfTable(id) })
	}
	if err != nil {
		return nil, err
	}
	return q.answer()
}

// checkOwnerRequest refuses requests that name several objects, or half of one.
func checkOwnerRequest(req *weftv1.OwnerRequest) error {
	switch {
	case req.GetTable() == "":
		return fmt.Errorf("%w: the table has no name", ErrProtocol)
	case req.GetObject() != nil && (req.GetChain() != "" || req.GetSet() != ""):
		return fmt.Errorf("%w: both a named object and a chain or set are named: ask for one of them", ErrProtocol)
	case req.GetChain() != "" && req.GetSet() != "":
		return fmt.Errorf("%w: both a chain and a set are named: ask for one of them", ErrProtocol)
	case req.GetHandle() != 0 && req.GetChain() == "":
		return fmt.Errorf("%w: handle %d is in no chain: name that too", ErrProtocol, req.GetHandle())
	case req.GetKey() != "" && req.GetSet() == "":
		return fmt.Errorf("%w: key %s is in no set: name that too", ErrProtocol, admission.Clip(req.GetKey()))
	default:
		return nil
	}
}

// ownerQuery is an Owner request with what was found.
type ownerQuery struct {
	id     nft.TableID
	req    *weftv1.OwnerRequest
	owners []desired.Owned
	found  bool
	// chain and set are the declarations, where the object is or is in one.
	chain *object.Chain
	set   *set.Set
	// object is the declaration of a named object or flowtable.
	object desired.MergedObject
}

// elementOwner packs the key against the declaration as it is known to
// admission, so that the writer has nothing to parse.
func (a *Aggregator) elementOwner(ctx context.Context, q *ownerQuery) (*weftv1.OwnerResponse, error) {
	if err := a.admitting(ctx.Done()); err != nil {
		return nil, err
	}
	set, ok := a.scope.Load().Table(q.id).Set(q.req.GetSet())
	if !ok {
		return q.answer()
	}
	if len(q.req.GetKey()) > admission.MaxElementText {
		return nil, fmt.Errorf("%w: the key has %d bytes: at most %d are allowed", ErrInvalidName, len(q.req.GetKey()), admission.MaxElementText)
	}
	e, err := set.PackKey(q.req.GetKey())
	if err != nil {
		return nil, fmt.Errorf("%w: element %s of %s %s: %w", ErrInvalidName, admission.Clip(q.req.GetKey()), admission.SetKind(set.Map), set.Name, err)
	}
	q.set = set
	if err := a.ask(ctx, func(w *writer) { q.owners, q.found = w.state.OwnersOfElement(q.id, set.Name, e) }); err != nil {
		return nil, err
	}
	return q.answer()
}

// answer puts the owners into the words of the wire.
func (q *ownerQuery) answer() (*weftv1.OwnerResponse, error) {
	if !q.found {
		return nil, fmt.Errorf("%w: weft has no %s", ErrNoObject, q.name())
	}
	resp := &weftv1.OwnerResponse{}
	for i := range q.owners {
		o := &q.owners[i]
		resp.Owners = append(resp.Owners, &weftv1.OwnedBy{
			Publisher: o.Fragment.Publisher, Fragment: o.Fragment.Name, Priority: o.Priority,
			Text: q.text(o), Index: uint32(o.Index), //nolint:gosec // a count
		})
	}
	return resp, nil
}

// text is the object in nft's words.
func (q *ownerQuery) text(o *desired.Owned) string {
	switch {
	case o.Rule != nil:
		return strings.TrimSpace(strings.TrimPrefix(ruleText(q.id, q.req.GetChain(), o.Rule), fmt.Sprintf("rule %s %s", q.id, q.req.GetChain())))
	case q.set != nil && q.req.GetKey() != "":
		if q.set.Map {
			return q.set.FormatKey(o.Element) + " : " + q.set.FormatData(o.Element)
		}
		return q.set.FormatKey(o.Element)
	case q.set != nil:
		return noun(kernel.AddSet{Table: q.id, Set: q.set})
	case q.object.Object != nil:
		return noun(kernel.AddObject{Table: q.id, Object: q.object.Object})
	case q.object.Flowtable != nil:
		return noun(kernel.AddFlowtable{Table: q.id, Flowtable: q.object.Flowtable})
	case q.chain != nil:
		return noun(kernel.AddChain{Table: q.id, Chain: q.chain})
	default:
		return "table " + q.id.String()
	}
}

// name says what was asked for.
func (q *ownerQuery) name() string {
	s := "table " + admission.Clip(q.id.String())
	switch {
	case q.req.GetObject() != nil:
		s += " " + admission.Clip(admission.ObjectRef(q.req.GetObject()).String())
	case q.req.GetKey() != "":
		s += fmt.Sprintf(" set %s element %s", admission.Clip(q.req.GetSet()), admission.Clip(q.req.GetKey()))
	case q.req.GetSet() != "":
		s += " set " + admission.Clip(q.req.GetSet())
	case q.req.GetHandle() != 0:
		s += fmt.Sprintf(" chain %s rule handle %d", admission.Clip(q.req.GetChain()), q.req.GetHandle())
	case q.req.GetChain() != "":
		s += " chain " + admission.Clip(q.req.GetChain())
	}
	return s
}
