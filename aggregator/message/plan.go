package message

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

// Plan is the answer to a PlanRequest.
type Plan struct {
	// Revision is the last commit before the plan.
	Revision uint64
	// Rejections are in the order of the answer.
	Rejections []*weftv1.Rejection
	Preview    *desired.Preview
	// Fragments are by desired.Plan.Origin.
	Fragments []desired.Key
	Findings  []*weftv1.Finding
}

// Parts returns the plan as messages of about limit bytes.
func (p *Plan) Parts(limit int) iter.Seq[*weftv1.PlanResponse] {
	return func(yield func(*weftv1.PlanResponse) bool) {
		b := planParts{p: p, parts: parts[*weftv1.PlanResponse]{
			limit: limit, yield: yield, part: &weftv1.PlanResponse{Revision: p.Revision},
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

type planParts struct {
	p *Plan
	parts[*weftv1.PlanResponse]
}

func (b *planParts) addRejections() {
	for _, r := range b.p.Rejections {
		b.fit(r)
		b.part.Rejections = append(b.part.Rejections, r)
	}
}

func (b *planParts) addFindings() {
	for _, f := range b.p.Findings {
		b.fit(f)
		b.part.Findings = append(b.part.Findings, f)
	}
}

func (b *planParts) addAllChanges() {
	if len(b.p.Rejections) > 0 {
		return
	}
	b.part.Counts = Counts(b.p.Preview.Counts)
	for i := range b.p.Preview.Ops {
		if b.done {
			return
		}
		b.addChanges(i)
	}
}

func (b *planParts) addChanges(i int) {
	var fragment *weftv1.FragmentName
	if o := b.p.Preview.Origin[i]; o >= 0 && o < len(b.p.Fragments) {
		fragment = Name(b.p.Fragments[o])
	}
	add := func(op weftv1.Change_Operation, object *weftv1.ObjectName, text string) {
		c := &weftv1.Change{Operation: op, Object: object, Text: text, Fragment: fragment}
		b.fit(c)
		b.part.Changes = append(b.part.Changes, c)
	}
	elements := func(op weftv1.Change_Operation, table nft.TableID, set *set.Set, elements []set.Element) {
		for j := range elements {
			e := kernel.AddElements{Table: table, Set: set, Elements: elements[j : j+1]}
			add(op, admission.OpName(e), Noun(e))
		}
	}
	const added, deleted, flushed = weftv1.Change_OPERATION_ADD, weftv1.Change_OPERATION_DELETE, weftv1.Change_OPERATION_FLUSH
	before := b.p.Preview.Before[i]
	if before.Staged {
		return
	}
	set := func(op weftv1.Change_Operation, table nft.TableID, name string) {
		object := admission.ObjectName(table, admission.SetKind(before.Set.Map), name)
		add(op, object, object.Text())
	}
	switch op := b.p.Preview.Ops[i].(type) {
	case kernel.AddElements:
		elements(added, op.Table, op.Set, op.Elements)
	case kernel.DeleteElements:
		elements(deleted, op.Table, op.Set, op.Elements)
	case kernel.AddRule:
		add(added, admission.OpName(op), RuleText(op.Table, op.Chain, op.Rule)+place(op, before))
	case kernel.DeleteRule:
		add(deleted, admission.OpName(op), RuleText(op.Table, op.Chain, before.Rule)+fmt.Sprintf(" # handle %d", op.Handle.N))
	case kernel.DeleteSet:
		set(deleted, op.Table, op.Name)
	case kernel.FlushSet:
		set(flushed, op.Table, op.Name)
	case kernel.DeleteTable, kernel.DeleteChain, kernel.DeleteObject, kernel.DeleteFlowtable:
		add(deleted, admission.OpName(op), Noun(op))
	default:
		add(added, admission.OpName(op), Noun(op))
	}
}

// Noun returns an op in nft syntax without the verb.
func Noun(op kernel.Op) string {
	_, rest, _ := strings.Cut(kernel.Describe(op), " ")
	return rest
}

// RuleText returns a rule as nft lists it.
func RuleText(table nft.TableID, chain string, r *compile.Rule) string {
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

// place names the position of a rule, unless it follows a rule of the same plan.
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

func (b *planParts) addCosts() {
	if b.p.Preview == nil || len(b.p.Rejections) > 0 {
		return
	}
	for _, path := range b.p.Preview.Paths {
		m := &weftv1.PathCost{Chain: admission.PlaceName(path.Chain), Nanoseconds: uint64(path.ChainTime), Path: path.Chains()} //nolint:gosec // a count
		b.fit(m)
		b.part.Costs = append(b.part.Costs, m)
	}
}

func (b *planParts) addShadows() {
	if b.p.Preview == nil {
		return
	}
	shadows := b.p.Preview.Shadows
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
			Winner:  Name(s.Winner), WinnerValue: s.Decl.FormatData(s.Element),
			Hidden: Name(s.Hidden), HiddenValue: s.Decl.FormatData(s.HiddenElement),
		}
		b.fit(m)
		b.part.Shadows = append(b.part.Shadows, m)
	}
}

// Counts converts the counts of a plan.
func Counts(c desired.Counts) *weftv1.Counts {
	return &weftv1.Counts{
		Tables: uint32(c.Tables), Chains: uint32(c.Chains), Sets: uint32(c.Sets), Objects: uint32(c.Objects), //nolint:gosec // counts
		RulesAdded: uint32(c.RulesAdded), RulesDeleted: uint32(c.RulesDeleted), //nolint:gosec // counts
		ElementsAdded: uint64(c.ElementsAdded), ElementsDeleted: uint64(c.ElementsDeleted), //nolint:gosec // counts
	}
}
