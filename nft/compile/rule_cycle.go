package compile

import (
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/syntax"
)

// cyclic reports whether a selector's values begin again after the greatest:
// hours and days.
func cyclic(t term) bool {
	m, ok := t.(*metaTerm)
	return ok && (m.key.Key == selector.MetaTimeHour || m.key.Key == selector.MetaTimeDay)
}

// cycle evaluates a range of a cyclic selector. One that begins after its end,
// such as "22:00"-"06:00", is what the range between does not contain; like
// nft 1.0.6 this leaves out the ends themselves.
func (r *ruleCompiler) cycle(x *syntax.Range, w want) (term, error) {
	from, err := r.single(x.From, w)
	if err != nil {
		return nil, err
	}
	to, err := r.single(x.To, w)
	if err != nil {
		return nil, err
	}
	if from.v.cmp(to.v) > 0 {
		return outsideTerm{&rangeTerm{w.info(x.Pos), to.v, from.v}}, nil
	}
	return &rangeTerm{w.info(x.Pos), from.v, to.v}, nil
}

// outsideTerm is all that is not in a range.
type outsideTerm struct{ *rangeTerm }

// inverse returns the operator that matches what op does not.
func inverse(op string) string {
	if op == "!=" {
		return "=="
	}
	return "!="
}
