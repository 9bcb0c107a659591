package desired_test

import (
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/packed"
	nftset "github.com/weft-proxy/weft/nft/set"
)

func TestIntervals(t *testing.T) {
	h := newHarness(t)
	wide := nftset.Element{Key: addr("10.0.0.0"), KeyEnd: addr("10.255.255.255")}
	narrow := nftset.Element{Key: addr("10.0.0.0"), KeyEnd: addr("10.0.0.255")}
	h.commit(snapshot(policy, 0, in(ipWeft, intervalSet("i", wide))))
	h.commit(patch(policy, in(ipWeft, desired.Elements{Set: "i", Remove: []nftset.Element{wide}, Add: []nftset.Element{narrow}})))
	if got := len(h.k.tables[ipWeft].sets["i"].elements); got != 1 {
		t.Errorf("%d elements, want 1", got)
	}
	single := intervalSet("i").Decl
	a, b := member("10.0.0.1"), member("10.0.0.1")
	b.KeyEnd = b.Key
	if packed.ID(single, &a) != packed.ID(single, &b) {
		t.Error("a single value without end is another element than with it")
	}
}

func TestElementOptionsReplace(t *testing.T) {
	h := newHarness(t)
	s := withFlags(addrSet("s"), nftset.FlagTimeout)
	d := *s.Decl
	d.Timeout = time.Minute
	s.Decl = &d
	e := member("10.0.0.1")
	s.Elements = []nftset.Element{e}
	h.commit(snapshot(policy, 0, in(ipWeft, s)))
	for _, tt := range []struct {
		timeout time.Duration
		comment string
		ops     int
	}{
		{time.Minute, "", 1}, // the set's own: it is renewed
		{time.Minute + time.Millisecond, "", 1},
		{time.Hour, "", 2},
		{time.Hour, "why", 2},
		{time.Hour, "why", 1},
	} {
		e.Timeout, e.Comment = tt.timeout, tt.comment
		p := h.commit(patch(policy, in(ipWeft, desired.Elements{Set: "s", Add: []nftset.Element{e}})))
		if len(p.Ops) != tt.ops {
			t.Errorf("timeout %s comment %q: plan:\n%s\nwant %d ops", tt.timeout, tt.comment, planText(p), tt.ops)
		}
	}
}

func TestRepeatedElements(t *testing.T) {
	h := newHarness(t)
	h.commit(snapshot(policy, 0, in(ipWeft, addrMap("m", mapped("10.0.0.1", "10.1.0.1"), mapped("10.0.0.1", "10.1.0.2")))))
	if got := h.k.tables[ipWeft].sets["m"].elements[addr("10.0.0.1")].Data; got != addr("10.1.0.2") {
		t.Errorf("value %x, want the last", got)
	}
	p := h.commit(snapshot(policy, 0, in(ipWeft, addrMap("m", mapped("10.0.0.1", "10.1.0.1"), mapped("10.0.0.1", "10.1.0.2")))))
	if !noOps(p) {
		t.Errorf("plan of the same again:\n%s", planText(p))
	}
}
