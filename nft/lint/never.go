package lint

import (
	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/eval"
	"github.com/weft-proxy/weft/nft/expr"
)

// tables also finds sets without readers, unless part is set.
func (l *linter) tables(part bool) {
	for i := range l.rules.Tables {
		t := &l.rules.Tables[i]
		read := make(map[string]bool)
		for j := range t.Chains {
			l.chain(t, &t.Chains[j], read)
		}
		for j := range t.Sets {
			if part {
				break
			}
			l.set(t, &t.Sets[j], read)
		}
	}
}

func (l *linter) chain(t *eval.Table, c *eval.Chain, read map[string]bool) {
	var end *eval.Rule
	rules := rulesOf(c)
	for i := range rules {
		r := &rules[i]
		uses(r, read)
		if end != nil {
			l.unreachable(t, c, end, r)
			continue
		}
		s := newSolver(t)
		if s.rule(r, ""); s.contradicted {
			at := l.place(t, c, r)
			l.report(Finding{
				ID: NeverMatches, Subject: at, Text: "the conditions of a rule of " + at.Party.String() + " contradict each other, so the rule never matches",
				Remedy: "Correct the rule, or remove it",
			}, r)
		}
		if endsChain(r) {
			end = r
		}
	}
}

func (l *linter) unreachable(t *eval.Table, c *eval.Chain, end, r *eval.Rule) {
	subject, other := l.place(t, c, r), l.place(t, c, end)
	l.report(Finding{
		ID: NeverMatches, Subject: subject, Other: other,
		Text:   "a rule of " + other.Party.String() + " ends the chain for every packet, so a later rule of " + subject.Party.String() + " never matches",
		Remedy: "Move the later rule to before the other, or remove it",
	}, r, end)
}

func endsChain(r *eval.Rule) bool {
	for _, e := range r.Exprs {
		switch k := e.(type) {
		case *expr.Unknown:
			if name, _, _, ok := k.Extension(); ok && k.Name == "match" && name == "comment" {
				continue
			}
		case *expr.Log:
			continue
		case expr.Library:
			switch k.Any.(type) {
			case *google.Counter, *google.Verdict, *google.Reject:
				continue
			}
		}
		return false
	}
	v, ok := verdictOf(r)
	switch v.Code {
	case datatype.VerdictAccept, datatype.VerdictDrop, datatype.VerdictReturn, datatype.VerdictGoto:
		return ok
	default:
		return false
	}
}

func uses(r *eval.Rule, read map[string]bool) {
	for _, e := range r.Exprs {
		switch k := expr.Unwrap(e).(type) {
		case *expr.Dynset:
			read[k.SetName] = true
		case *expr.ObjrefMap:
			read[k.SetName] = true
		case *expr.Unknown:
			// may refer to any set
			read[""] = true
		case *google.Lookup:
			read[k.SetName] = true
		}
	}
}

// An empty set may be for future rules, and a set filled by packets for listing.
func (l *linter) set(t *eval.Table, s *eval.Set, read map[string]bool) {
	const forOthers = unix.NFT_SET_EVAL | unix.NFT_SET_ANONYMOUS
	if read[s.Decl.Name] || read[""] || s.Decl.Flags&forOthers != 0 || ignores(s.Decl.Comment, NeverRead) || len(elementsOf(*s)) == 0 {
		return
	}
	at := Place{Party: partyOf(t.ID, ""), Table: t.ID, Set: s.Decl.Name}
	if s.Owner != "" {
		at.Party = Party{Fragment: s.Owner}
	}
	l.report(Finding{
		ID: NeverRead, Subject: at, Text: "no rule reads set " + at.Set + " of " + at.Party.String(),
		Remedy: "Add the rule that should read it, or remove the set",
	})
}
