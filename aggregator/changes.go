package aggregator

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/set"
)

// parts returns a plan as messages of about limit bytes.
func (p *planning) parts(limit int) iter.Seq[*weftv1.PlanResponse] {
	return func(yield func(*weftv1.PlanResponse) bool) {
		b := planParts{p: p, parts: parts[*weftv1.PlanResponse]{
			limit: limit, yield: yield, part: &weftv1.PlanResponse{Revision: p.revision},
			next: func() *weftv1.PlanResponse { return &weftv1.PlanResponse{} },
		}}
		b.addRejections()
		b.addAllChanges()
		b.addShadows()
		b.addCosts()
		b.addFindings()
		b.send()
	}
}

// planParts builds the parts of a plan.
type planParts struct {
	p *planning
	parts[*weftv1.PlanResponse]
}

func (b *planParts) addRejections() {
	rejected := b.p.rejected
	slices.SortStableFunc(rejected, func(x, y *RejectedError) int { return cmp.Compare(b.p.place[x.Fragment], b.p.place[y.Fragment]) })
	for _, r := range rejected {
		m := &weftv1.Rejection{Fragment: nameOf(r.Fragment), Violations: r.Violations}
		b.fit(m)
		b.part.Rejections = append(b.part.Rejections, m)
	}
}

func (b *planParts) addFindings() {
	for _, f := range b.p.findings {
		b.fit(f)
		b.part.Findings = append(b.part.Findings, f)
	}
}

// addAllChanges adds the changes of a plan that nothing rejects.
func (b *planParts) addAllChanges() {
	if len(b.p.rejected) > 0 {
		return
	}
	b.part.Counts = countsOf(b.p.preview.Counts)
	for i := range b.p.preview.Ops {
		if b.done {
			return
		}
		b.addChanges(i)
	}
}

// addChanges adds the changes of one op: one, or one for each element.
func (b *planParts) addChanges(i int) {
	var fragment *weftv1.FragmentName
	if o := b.p.preview.Origin[i]; o >= 0 && o < len(b.p.accepted) {
		fragment = nameOf(b.p.accepted[o].key())
	}
	add := func(op weftv1.Change_Operation, object *weftv1.ObjectName, text string) {
		c := &weftv1.Change{Operation: op, Object: object, Text: text, Fragment: fragment}
		b.fit(c)
		b.part.Changes = append(b.part.Changes, c)
	}
	elements := func(op weftv1.Change_Operation, table nft.TableID, set *set.Set, elements []set.Element) {
		for j := range elements {
			e := kernel.AddElements{Table: table, Set: set, Elements: elements[j : j+1]}
			add(op, admission.OpName(e), noun(e))
		}
	}
	const added, deleted, flushed = weftv1.Change_OPERATION_ADD, weftv1.Change_OPERATION_DELETE, weftv1.Change_OPERATION_FLUSH
	before := b.p.preview.Before[i]
	if before.Staged {
		return
	}
	set := func(op weftv1.Change_Operation, table nft.TableID, name string) {
		object := admission.ObjectName(table, admission.SetKind(before.Set.Map), name)
		add(op, object, object.Text())
	}
	switch op := b.p.preview.Ops[i].(type) {
	case kernel.AddElements:
		elements(added, op.Table, op.Set, op.Elements)
	case kernel.DeleteElements:
		elements(deleted, op.Table, op.Set, op.Elements)
	case kernel.AddRule:
		add(added, admission.OpName(op), ruleText(op.Table, op.Chain, op.Rule)+place(op, before))
	case kernel.DeleteRule:
		add(deleted, admission.OpName(op), ruleText(op.Table, op.Chain, before.Rule)+fmt.Sprintf(" # handle %d", op.Handle.N))
	case kernel.DeleteSet:
		set(deleted, op.Table, op.Name)
	case kernel.FlushSet:
		set(flushed, op.Table, op.Name)
	case kernel.DeleteTable, kernel.DeleteChain, kernel.DeleteObject, kernel.DeleteFlowtable:
		add(deleted, admission.OpName(op), noun(op))
	default:
		add(added, admission.OpName(op), noun(op))
	}
}

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
		s += ` comment "` + nft.CommentText(r.Comment) + `"`
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

// addCosts adds what base chains cost, of a plan that nothing rejects.
func (b *planParts) addCosts() {
	if b.p.preview == nil || len(b.p.rejected) > 0 {
		return
	}
	for _, path := range b.p.preview.Paths {
		m := &weftv1.PathCost{Chain: admission.PlaceName(path.Chain), Nanoseconds: uint64(path.ChainTime), Path: path.Chains()} //nolint:gosec // a count
		b.fit(m)
		b.part.Costs = append(b.part.Costs, m)
	}
}

// addShadows adds the shadows in the order of their maps and keys.
func (b *planParts) addShadows() {
	if b.p.preview == nil {
		return
	}
	shadows := b.p.preview.Shadows
	slices.SortFunc(shadows, func(x, y desired.Shadow) int {
		return cmp.Or(
			cmp.Compare(x.Table.Family, y.Table.Family), strings.Compare(x.Table.Name, y.Table.Name), strings.Compare(x.Decl.Name, y.Decl.Name),
			compareElements(x.Element, y.Element), x.Winner.Compare(y.Winner), x.Hidden.Compare(y.Hidden),
		)
	})
	for i := range shadows {
		s := &shadows[i]
		m := &weftv1.Shadow{
			Element: admission.ElementName(s.Table, s.Decl.Name, s.Decl.FormatKey(s.Element)),
			Winner:  nameOf(s.Winner), WinnerValue: s.Decl.FormatData(s.Element),
			Hidden: nameOf(s.Hidden), HiddenValue: s.Decl.FormatData(s.HiddenElement),
		}
		b.fit(m)
		b.part.Shadows = append(b.part.Shadows, m)
	}
}
