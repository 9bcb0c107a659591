package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/eval"
	"github.com/weft-proxy/weft/nft/expr"
)

const (
	wordAccept    = "accept"
	wordDrop      = "drop"
	wordReject    = "reject"
	wordUndecided = "undecided"
)

var hooks = [...]string{"prerouting", "input", "forward", "output", "postrouting"}

func (a *asker) steps(o *eval.Outcome) (verdict string, out []Step) {
	verdict = [...]string{eval.Accept: wordAccept, eval.Drop: wordDrop, eval.Undecided: wordUndecided}[o.Verdict]
	base := ""
	for i := range o.Steps {
		s := &o.Steps[i]
		// The first step in a base chain.
		if base == "" {
			base = s.Chain
		}
		step := a.describe(s, base)
		step.Hook = hooks[s.Hook]
		for _, l := range s.Lookups {
			// Anonymous sets are in the text of the rule.
			if l.Found && !strings.HasPrefix(l.Set, "__") {
				step.Lookups = append(step.Lookups, a.lookup(s.Table, &l))
			}
		}
		out = append(out, step)
		if s.Verdict.Code == datatype.VerdictAccept || s.Verdict.Code == datatype.VerdictDrop {
			base = ""
		}
	}
	if n := len(out); verdict == wordDrop && n > 0 && out[n-1].Verdict == wordReject {
		verdict = wordReject
	}
	return verdict, out
}

// describe sets all fields except for the hook and the lookups.
func (a *asker) describe(s *eval.Step, base string) Step {
	step := Step{Table: s.Table.String(), Chain: s.Chain, Handle: s.Rule, Foreign: a.foreign(s.Table)}
	if c := a.chain(s.Table, base); c != nil && c.Decl.Base != nil {
		step.Priority = c.Decl.Base.Priority
	}
	if s.Verdict.Code != datatype.VerdictContinue {
		step.Verdict = s.Verdict.String()
	}
	if s.Matched == nil {
		step.Rule = "policy " + step.Verdict
		return step
	}
	step.Rule, step.Comment, step.Owner = s.Matched.String(), s.Matched.Comment, s.Matched.Owner
	if rejects(s.Matched) && s.Verdict.Code == datatype.VerdictDrop {
		step.Verdict = wordReject
	}
	return step
}

func rejects(r *eval.Rule) bool {
	return slices.ContainsFunc(r.Exprs, func(e expr.Expr) bool {
		text := expr.Format(e)
		return strings.HasPrefix(text, "reject ") || strings.HasPrefix(text, "target name REJECT ")
	})
}

func (a *asker) foreign(table nft.TableID) bool {
	t := a.table(table)
	return !a.saved && t != nil && !t.Ours
}

func (a *asker) table(id nft.TableID) *eval.Table {
	for i := range a.rules.Tables {
		if a.rules.Tables[i].ID == id {
			return &a.rules.Tables[i]
		}
	}
	return nil
}

func (a *asker) chain(table nft.TableID, name string) *eval.Chain {
	if t := a.table(table); t != nil {
		for i := range t.Chains {
			if t.Chains[i].Decl.Name == name {
				return &t.Chains[i]
			}
		}
	}
	return nil
}

func (a *asker) lookup(table nft.TableID, l *eval.Lookup) string {
	if t := a.table(table); t != nil {
		for i := range t.Sets {
			if d := t.Sets[i].Decl; d.Name == l.Set {
				return fmt.Sprintf("%s { %s%s }", l.Set, d.FormatKey(l.Element), prefixed(" : ", d.FormatData(l.Element)))
			}
		}
	}
	return l.Set
}
