package lint

import (
	"fmt"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/eval"
)

// ending returns the last step and the outcome if the decision is certain.
func (l *linter) ending(b eval.BaseChain, p eval.Packet) (last *eval.Step, out eval.Outcome, ok bool) {
	outcomes, complete, err := eval.EvaluateChain(l.rules, b, p, host(b.Base.Hook), &l.budget)
	if err != nil || !complete || len(outcomes) != 1 {
		return nil, out, false
	}
	out = outcomes[0]
	if out.Verdict == eval.Undecided || len(out.Steps) == 0 {
		return nil, out, false
	}
	return &out.Steps[len(out.Steps)-1], out, true
}

// A later or equal priority overrides.
func (l *linter) overridden(family nft.Family, chains []eval.BaseChain) {
	for i, b := range chains {
		var others []eval.BaseChain
		for j, o := range chains {
			same := o.Base.Priority == b.Base.Priority
			if (j > i || j < i && same) && o.Base.Type != "nat" {
				others = append(others, o)
			}
		}
		if b.Base.Type == "nat" || len(others) == 0 {
			continue
		}
		trials := maxTrials
		l.walk(b, func(way []step, c *eval.Chain) bool {
			r := way[len(way)-1].rule
			if v, ok := verdictOf(r); !ok || v.Code != datatype.VerdictAccept {
				return true
			}
			if trials--; trials < 0 {
				return false
			}
			if p, ok := witness(b, family, way); ok {
				l.accepted(b, c, r, p, others)
			}
			return true
		})
	}
}

func (l *linter) accepted(b eval.BaseChain, c *eval.Chain, r *eval.Rule, p eval.Packet, others []eval.BaseChain) {
	last, out, ok := l.ending(b, p)
	if !ok || last.Matched != r || out.Verdict != eval.Accept {
		return
	}
	mine := l.place(b.Table, c, r)
	for _, other := range others {
		last, end, ok := l.ending(other, out.Packet)
		if !ok || end.Verdict != eval.Drop {
			continue
		}
		theirs := l.place(other.Table, other.Chain, nil)
		if last.Matched != nil {
			theirs = l.place(other.Table, l.chainOf(other.Table, last.Chain), last.Matched)
		}
		if theirs.Party.key() == mine.Party.key() {
			continue
		}
		l.report(Finding{
			ID: AcceptOverridden, Subject: mine, Other: theirs, Example: describe(&p),
			Text: fmt.Sprintf("%s drops packets that %s accepts, and an accept ends its own base chain only", theirs.Party, mine.Party),
			Remedy: fmt.Sprintf("Accept them in chain %s of table %s too, or narrow its drop",
				other.Chain.Decl.Name, other.Table.ID),
		}, r, last.Matched)
	}
}
