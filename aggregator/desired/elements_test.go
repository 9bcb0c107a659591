package desired_test

import (
	"testing"

	"github.com/weft-proxy/weft/aggregator/desired/packed"
	nftset "github.com/weft-proxy/weft/nft/set"
)

func TestRedeclareWithOtherKeys(t *testing.T) {
	h := newHarness(t)
	h.commit(snapshot(policy, 0, in(ipWeft, addrSet("s", member("10.0.0.1"), member("10.0.0.2")))))
	wide := addrSet("s", nftset.Element{Key: addr("::1")})
	wide.Decl.Key = typeAddr6
	if p := h.commit(snapshot(policy, 0, in(ipWeft, wide))); p.Counts.Sets != 2 || p.Counts.ElementsAdded != 1 {
		t.Errorf("plan of another type of key: %+v\n%s", p.Counts, planText(p))
	}
	if sh := h.Tables[ipWeft].Set("s").Shares[0]; sh.Elements.Shape != packed.ShapeOf(wide.Decl) {
		t.Errorf("the elements have the shape %+v, want that of %+v", sh.Elements.Shape, wide.Decl)
	}
}
