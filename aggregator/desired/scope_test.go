package desired_test

import (
	"testing"

	"github.com/weft-proxy/weft/aggregator/desired"
	nftset "github.com/weft-proxy/weft/nft/set"
)

func TestScope(t *testing.T) {
	h := newHarness(t)
	before := h.Scope()
	h.apply(snapshot(services, 0, in(ipWeft, addrSet("s"), regular("c"))), snapshot(policy, 0, in(ipDeny, addrSet("d"))))
	scope := h.Scope()
	if _, ok := before.Table(ipWeft).Set("s"); ok {
		t.Error("an older scope has changed")
	}
	if d, ok := scope.Table(ipWeft).Set("s"); !ok || d.Name != "s" {
		t.Errorf("set s is %v, %t", d, ok)
	}
	if !scope.Table(ipWeft).Chain("c") || scope.Table(ipWeft).Chain("d") || scope.Table(ipDeny).Chain("c") {
		t.Error("chains are wrong")
	}
	h.commit(patch(services, in(ipWeft, desired.Elements{Set: "s", Add: []nftset.Element{member("10.0.0.1")}})))
	if h.Scope() != scope {
		t.Error("elements made a new scope")
	}
	h.commit(snapshot(policy, 0, in(ipDeny, addrSet("e"))))
	next := h.Scope()
	if next.Table(ipWeft) != scope.Table(ipWeft) {
		t.Error("a table whose declarations are the same was built anew")
	}
	if _, ok := next.Table(ipDeny).Set("d"); ok {
		t.Error("set d is still declared")
	}
	h.apply(snapshot(policy, 0))
	if _, ok := h.Scope().Table(ipDeny).Set("e"); ok {
		t.Error("set e is declared after its withdrawal")
	}
	h.Rollback()
	if _, ok := h.Scope().Table(ipDeny).Set("e"); !ok {
		t.Error("set e is not declared after Rollback")
	}
}
