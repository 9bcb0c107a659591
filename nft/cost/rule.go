package cost

import (
	"iter"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/set"
)

// exprsPerVisit is how many expressions a rule may have to count as one. Common rules have
// four to ten; the kernel allows 128 (NFT_RULE_MAXEXPRS).
const exprsPerVisit = 16

// Visit returns as how many rules a rule counts for a packet that runs it. It is 1 for
// all but very long rules.
func Visit(r *compile.Rule) int { return max(1, (len(r.Exprs)+exprsPerVisit-1)/exprsPerVisit) }

// Call is a chain, or a verdict map whose elements lead to chains, to which a rule sends
// packets.
type Call struct {
	// Chain is the target; empty for a map.
	Chain string
	// Map is the name of the verdict map; empty for a chain.
	Map string
	// Goto is true if the packet does not come back from the chain.
	Goto bool
}

// Calls returns where a rule sends packets. One packet takes one of them at most.
func Calls(r *compile.Rule) iter.Seq[Call] {
	return func(yield func(Call) bool) {
		if len(r.Chains) == 0 && len(r.Sets) == 0 {
			return
		}
		if len(r.Exprs) == 0 {
			byName(r, yield)
			return
		}
		for _, e := range r.Exprs {
			switch x := expr.Unwrap(e).(type) {
			case *google.Verdict:
				if x.Chain != "" && !yield(Call{Chain: x.Chain, Goto: x.Kind == google.VerdictGoto}) {
					return
				}
			case *google.Lookup:
				if x.IsDestRegSet && x.DestRegister == unix.NFT_REG_VERDICT && !lookups(r, x, yield) {
					return
				}
			}
		}
	}
}

// byName yields the targets of a rule that was put together by hand.
func byName(r *compile.Rule, yield func(Call) bool) {
	for _, name := range r.Chains {
		if !yield(Call{Chain: name}) {
			return
		}
	}
	for _, name := range r.Sets {
		if !yield(Call{Map: name}) {
			return
		}
	}
}

// lookups yields the targets of a lookup in a verdict map.
func lookups(r *compile.Rule, x *google.Lookup, yield func(Call) bool) bool {
	if x.SetID == 0 {
		return yield(Call{Map: x.SetName})
	}
	for _, e := range r.Anonymous[x.SetID-1].Elements {
		v, err := set.ParseVerdictData(e.Data)
		if err == nil && v.Chain != "" && !yield(Call{Chain: v.Chain, Goto: v.Code == datatype.VerdictGoto}) {
			return false
		}
	}
	return true
}
