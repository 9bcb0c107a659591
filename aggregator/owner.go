package aggregator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
)

// Owner returns the fragments that an object of the kernel comes from and that a reader
// sees, in merge order. An object from before a restart whose fragment is not known has an owner
// without a name; a table lists only fragments. An empty family is ip. Owner waits
// while the aggregator starts.
//
// Possible errors: ErrInvalidName (the family, or an element's key), ErrProtocol
// (a request that does not name one object), ErrNoObject, ErrHidden, ErrStandby, ErrStopped,
// ErrGone (ctx ended during the start), ctx's.
func (a *Aggregator) Owner(ctx context.Context, req *weftv1.OwnerRequest, r Reader) (*weftv1.OwnerResponse, error) {
	id, err := tableID(req.GetObject().GetFamily(), req.GetObject().GetTable())
	if err != nil {
		return nil, err
	}
	n := req.GetObject()
	if n.GetTable() == "" {
		return nil, fmt.Errorf("%w: the table has no name", ErrProtocol)
	}
	if (n.GetName() == "") != (n.GetKind() == "table") {
		return nil, fmt.Errorf("%w: a %s is named %q", ErrProtocol, admission.Clip(n.GetKind()), admission.Clip(n.GetName()))
	}
	q := ownerQuery{id: id, name: n}
	var find func(*merge.State)
	switch n.GetKind() {
	case "table":
		find = func(s *merge.State) { q.owners, q.found = views.OwnersOfTable(s, id) }
	case "rule":
		if n.GetHandle() == 0 {
			return nil, fmt.Errorf("%w: the rule has no handle", ErrProtocol)
		}
		q.owners = make([]desired.Owned, 1)
		find = func(s *merge.State) { q.owners[0], q.found = views.OwnerOfRule(s, id, n.GetName(), n.GetHandle()) }
	case "element":
		if find, err = a.elementOwner(ctx, &q); err != nil {
			return nil, err
		}
	default:
		ref := object.Ref{Kind: nft.ObjectKind(n.GetKind()), Name: n.GetName()}
		if n.GetKind() == "map" {
			ref.Kind = "set"
		}
		find = func(s *merge.State) { q.owners, q.addition, q.found = views.Owners(s, id, ref) }
	}
	if err := a.ask(ctx, func(w *writer) { find(w.state) }); err != nil {
		return nil, err
	}
	return q.answer(r)
}

// ownerQuery is an Owner request with what was found.
type ownerQuery struct {
	id     nft.TableID
	name   *weftv1.ObjectName
	owners []desired.Owned
	found  bool
	// set is the declaration of the set that the element is in.
	set *set.Set
	// addition adds the chain, set or object.
	addition kernel.Op
}

// elementOwner returns what finds the owners of an element. It packs the key against
// the declaration as it is known to admission, so that the writer has nothing to parse.
func (a *Aggregator) elementOwner(ctx context.Context, q *ownerQuery) (find func(*merge.State), _ error) {
	if err := a.admitting(ctx.Done()); err != nil {
		return nil, err
	}
	set, ok := a.scope.Load().Table(q.id).Set(q.name.GetName())
	if !ok {
		return func(*merge.State) {}, nil
	}
	if len(q.name.GetKey()) > admission.MaxElementText {
		return nil, fmt.Errorf("%w: the key has %d bytes: at most %d are allowed", ErrInvalidName, len(q.name.GetKey()), admission.MaxElementText)
	}
	e, err := set.PackKey(q.name.GetKey())
	if err != nil {
		return nil, fmt.Errorf("%w: element %s of %s %s: %w", ErrInvalidName, admission.Clip(q.name.GetKey()), admission.SetKind(set.Map), set.Name, err)
	}
	q.set = set
	return func(s *merge.State) { q.owners, q.found = views.OwnersOfElement(s, q.id, set.Name, e) }, nil
}

// answer puts the owners into the words of the wire.
func (q *ownerQuery) answer(r Reader) (*weftv1.OwnerResponse, error) {
	if !q.found {
		return nil, fmt.Errorf("%w: weft has no %s", ErrNoObject, admission.Clip(q.name.Text()))
	}
	owners := len(q.owners)
	q.owners = slices.DeleteFunc(q.owners, func(o desired.Owned) bool { return !r.Sees(o.Fragment.Publisher) })
	if len(q.owners) == 0 && owners > 0 {
		return nil, fmt.Errorf("%w: %s", ErrHidden, admission.Clip(q.name.Text()))
	}
	resp := &weftv1.OwnerResponse{}
	for i := range q.owners {
		o := &q.owners[i]
		resp.Owners = append(resp.Owners, &weftv1.ObjectOwner{
			Fragment: nameOf(o.Fragment), Priority: o.Priority,
			Text: q.text(o), Index: uint32(o.Index), //nolint:gosec // a count
		})
	}
	return resp, nil
}

// text is the object in nft's words.
func (q *ownerQuery) text(o *desired.Owned) string {
	switch {
	case o.Rule != nil:
		return strings.TrimSpace(strings.TrimPrefix(ruleText(q.id, q.name.GetName(), o.Rule), fmt.Sprintf("rule %s %s", q.id, q.name.GetName())))
	case q.set != nil:
		text := q.set.FormatKey(o.Element)
		if left := o.Element.Expires(); left != 0 {
			text += " expires " + datatype.FormatDuration(max(left.Round(time.Second), time.Second))
		}
		if q.set.Map {
			text += " : " + q.set.FormatData(o.Element)
		}
		return text
	case q.addition != nil:
		return noun(q.addition)
	default:
		return "table " + q.id.String()
	}
}
