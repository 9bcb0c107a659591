package lint

import (
	"fmt"

	google "github.com/google/nftables/expr"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/eval"
	"github.com/weft-proxy/weft/nft/expr"
)

// Two drops of filter chains commute.
func (l *linter) equalPriorities(family nft.Family, chains []eval.BaseChain) {
	for i, first := range chains {
		for _, second := range chains[i+1:] {
			a, b := first.Base, second.Base
			if a.Type == "nat" && b.Type == "nat" && a.Priority == b.Priority && first.Table != second.Table {
				if !l.bothTranslate(family, first, second) {
					l.bothTranslate(family, second, first)
				}
			}
		}
	}
}

// bothTranslate looks for a packet of the first chain that both chains translate.
func (l *linter) bothTranslate(family nft.Family, first, second eval.BaseChain) (found bool) {
	trials := maxTrials
	l.walk(first, func(way []step, c *eval.Chain) bool {
		r := way[len(way)-1].rule
		if !translates(r) {
			return true
		}
		if trials--; trials < 0 {
			return false
		}
		p, ok := witness(first, family, way)
		if !ok {
			return true
		}
		mine, _, ok := l.ending(first, p)
		if !ok || mine.Matched != r {
			return true
		}
		theirs, _, ok := l.ending(second, p)
		if !ok || theirs.Matched == nil || !translates(theirs.Matched) {
			return true
		}
		subject := l.place(first.Table, c, r)
		other := l.place(second.Table, l.chainOf(second.Table, theirs.Chain), theirs.Matched)
		if subject.Party.key() == other.Party.key() {
			return true
		}
		base := first.Base
		l.report(Finding{
			ID: EqualPriority, Subject: subject, Other: other, Example: describe(&p),
			Text: fmt.Sprintf("%s and %s translate the same packets at hook %s with the same priority %d: which one does depends on which was loaded last",
				subject.Party, other.Party, hookNames[base.Hook], base.Priority),
			Remedy: "Give the chain that must decide a smaller priority, or exclude its packets from the other",
		}, r, theirs.Matched)
		found = true
		return true
	})
	return found
}

func translates(r *eval.Rule) bool {
	for _, e := range r.Exprs {
		switch k := expr.Unwrap(e).(type) {
		case *expr.Masq, *expr.NAT, *google.Redir:
			return true
		case *expr.Unknown:
			switch name, _, _, _ := k.Extension(); name {
			case "DNAT", "SNAT", "MASQUERADE", "REDIRECT":
				return k.Name == "target"
			}
		}
	}
	return false
}
