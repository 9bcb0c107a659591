package aggregator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/set"
)

// message puts a plan into the words of the wire; room is the size of what it
// lists of changes and shadows, in bytes.
func (p *planning) message(room int) *weftv1.PlanResponse {
	resp := &weftv1.PlanResponse{Revision: p.revision}
	slices.SortStableFunc(p.rejected, func(a, b *RejectedError) int { return cmp.Compare(p.place[a.Fragment], p.place[b.Fragment]) })
	for _, r := range p.rejected {
		resp.Rejections = append(resp.Rejections, &weftv1.Rejection{Fragment: r.Fragment.String(), Violations: r.Violations})
	}
	if len(p.rejected) == 0 {
		resp.Counts = countsOf(p.preview.Counts)
		for i := range p.preview.Ops {
			p.addChanges(resp, i, &room)
		}
	}
	p.addShadows(resp, &room)
	return resp
}

// addChanges appends the changes of one op: one, or one for each element.
func (p *planning) addChanges(resp *weftv1.PlanResponse, i int, room *int) {
	fragment := ""
	if o := p.preview.Origin[i]; o >= 0 && o < len(p.accepted) {
		fragment = p.accepted[o].key().String()
	}
	add := func(op weftv1.Change_Operation, object string) {
		c := &weftv1.Change{Operation: op, Object: object, Fragment: fragment}
		if *room -= proto.Size(c) + changeOverhead; *room < 0 {
			resp.Omitted++
			return
		}
		resp.Changes = append(resp.Changes, c)
	}
	elements := func(op weftv1.Change_Operation, table nft.TableID, set *set.Set, elements []set.Element) {
		if *room < 0 {
			resp.Omitted += uint64(len(elements))
			return
		}
		for j := range elements {
			add(op, noun(kernel.AddElements{Table: table, Set: set, Elements: elements[j : j+1]}))
		}
	}
	const added, deleted, flushed = weftv1.Change_OPERATION_ADD, weftv1.Change_OPERATION_DELETE, weftv1.Change_OPERATION_FLUSH
	before := p.preview.Before[i]
	switch op := p.preview.Ops[i].(type) {
	case kernel.AddElements:
		elements(added, op.Table, op.Set, op.Elements)
	case kernel.DeleteElements:
		elements(deleted, op.Table, op.Set, op.Elements)
	case kernel.AddRule:
		add(added, ruleText(op.Table, op.Chain, op.Rule)+place(op, before))
	case kernel.DeleteRule:
		add(deleted, ruleText(op.Table, op.Chain, before.Rule)+fmt.Sprintf(" # handle %d", op.Handle.N))
	case kernel.DeleteSet:
		add(deleted, fmt.Sprintf("%s %s %s", admission.SetKind(before.Set.Map), op.Table, op.Name))
	case kernel.FlushSet:
		add(flushed, fmt.Sprintf("%s %s %s", admission.SetKind(before.Set.Map), op.Table, op.Name))
	case kernel.DeleteTable, kernel.DeleteChain, kernel.DeleteObject, kernel.DeleteFlowtable:
		add(deleted, noun(op))
	default:
		add(added, noun(op))
	}
}

// changeOverhead is what a change takes in a message beside its own bytes.
const changeOverhead = 6

// noun is an op in nft's words without the verb.
func noun(op kernel.Op) string {
	_, rest, _ := strings.Cut(kernel.Describe(op), " ")
	return rest
}

// ruleText is a rule as nft lists it; of an adopted one the text is not known.
func ruleText(table nft.TableID, chain string, r *compile.Rule) string {
	s := fmt.Sprintf("rule %s %s", table, chain)
	if r == nil {
		return s
	}
	if r.Text != "" {
		s += " " + r.Text
	}
	if r.Comment != "" {
		// nft knows no escapes.
		s += ` comment "` + r.Comment + `"`
	}
	return s
}

// place says where a rule goes, if that is not after what the same plan adds.
func place(op kernel.AddRule, before desired.Before) string {
	switch {
	case before.Head:
		return " # at the head"
	case op.After != nil && op.After.N != 0:
		return fmt.Sprintf(" # after handle %d", op.After.N)
	default:
		return ""
	}
}

// addShadows appends the shadows in the order of their maps and keys.
func (p *planning) addShadows(resp *weftv1.PlanResponse, room *int) {
	if p.preview == nil {
		return
	}
	shadows := p.preview.Shadows
	slices.SortFunc(shadows, func(a, b desired.Shadow) int {
		return cmp.Or(
			cmp.Compare(a.Table.Family, b.Table.Family), strings.Compare(a.Table.Name, b.Table.Name), strings.Compare(a.Decl.Name, b.Decl.Name),
			compareElements(a.Element, b.Element), a.Winner.Compare(b.Winner), a.Hidden.Compare(b.Hidden),
		)
	})
	for i := range shadows {
		s := &shadows[i]
		m := &weftv1.Shadow{
			Object: fmt.Sprintf("table %s map %s", s.Table, s.Decl.Name), Key: s.Decl.FormatKey(s.Element),
			Winner: fragmentName(s.Winner), Value: s.Decl.FormatData(s.Element),
			Hidden: fragmentName(s.Hidden), HiddenValue: s.Decl.FormatData(s.HiddenElement),
		}
		if *room -= proto.Size(m) + changeOverhead; *room < 0 {
			resp.Omitted++
			continue
		}
		resp.Shadows = append(resp.Shadows, m)
	}
}

// fragmentName is "publisher/name"; "" for what is nobody's.
func fragmentName(k desired.Key) string {
	if k == (desired.Key{}) {
		return ""
	}
	return k.String()
}
