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

// Call is a lookup in a named set, or a jump to a chain.
type Call struct {
	// empty for a set
	Chain string
	// empty for a chain
	Set  string
	Goto bool
	// every packet in the rule makes the call
	Every bool
}

// Calls returns the calls of a rule. One packet goes to at most one chain.
func Calls(r *compile.Rule) iter.Seq[Call] {
	return func(yield func(Call) bool) {
		if len(r.Chains) == 0 && len(r.Sets) == 0 {
			return
		}
		if len(r.Exprs) == 0 {
			byName(r, yield)
			return
		}
		every := true
		for _, e := range r.Exprs {
			more := true
			switch x := expr.Unwrap(e).(type) {
			case *google.Verdict:
				more = x.Chain == "" || yield(Call{Chain: x.Chain, Goto: x.Kind == google.VerdictGoto, Every: every})
			case *google.Lookup:
				more = lookups(r, x, every, yield)
			case *expr.Dynset:
				more = x.SetID != 0 || yield(Call{Set: x.SetName, Every: every})
			case *expr.ObjrefMap:
				more = x.SetID != 0 || yield(Call{Set: x.SetName, Every: every})
			}
			if !more {
				return
			}
			every = every && !decides(expr.Unwrap(e))
		}
	}
}

func byName(r *compile.Rule, yield func(Call) bool) {
	for _, name := range r.Chains {
		if !yield(Call{Chain: name}) {
			return
		}
	}
	for _, name := range r.Sets {
		if !yield(Call{Set: name}) {
			return
		}
	}
}

func lookups(r *compile.Rule, x *google.Lookup, every bool, yield func(Call) bool) bool {
	if x.SetID == 0 {
		return yield(Call{Set: x.SetName, Every: every})
	}
	if !x.IsDestRegSet || x.DestRegister != unix.NFT_REG_VERDICT {
		return true
	}
	for _, e := range r.Anonymous[x.SetID-1].Elements {
		v, err := set.ParseVerdictData(e.Data)
		if err == nil && v.Chain != "" && !yield(Call{Chain: v.Chain, Goto: v.Code == datatype.VerdictGoto}) {
			return false
		}
	}
	return true
}
