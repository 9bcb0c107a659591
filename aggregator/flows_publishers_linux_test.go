package aggregator_test

import (
	"testing"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// TestFlowsOfTheLastWatch withdraws the last fragment that wants a map's flows to be watched,
// while a fragment of another publisher keeps the map: the flows of its keys go.
func TestFlowsOfTheLastWatch(t *testing.T) {
	n := newFlowNode(t)
	d, stop := n.run(t)
	keep := fronts(otherTo1)
	for _, m := range keep.GetTables()[0].GetMaps() {
		m.Role = weftv1.MapRole_MAP_ROLE_UNSPECIFIED
	}
	watch := fronts(dnsTo1)
	watch.Tables[0].Chains, watch.Tables[0].Maps = nil, watch.GetTables()[0].GetMaps()[:1]
	ctx := aggregatortest.Context(t)
	for publisher, f := range map[string]*weftv1.Fragment{"keeper": keep, "watcher": watch} {
		if _, err := d.Dial(t, publisher).Apply(ctx, f); err != nil {
			t.Fatal(err)
		}
	}
	n.send(t, 4001, "10.96.0.1:53", true)
	n.send(t, 4002, "10.96.0.2:53", true)
	n.wantFlows(t, flow1, flowOther)
	if _, err := d.Aggregator.Delete(ctx, "watcher", "services"); err != nil {
		t.Fatal(err)
	}
	stop()
	n.wantFlows(t, flowOther)
}

// TestFlowsOfAnotherPublisher has a publisher with a watched map of its own lead another's
// destination to the same backend, and take that back: the flows stay as long as the other
// map leads to it.
func TestFlowsOfAnotherPublisher(t *testing.T) {
	n := newFlowNode(t)
	d, stop := n.run(t)
	n.commitAndWait(t, d, dnsTo1)
	n.send(t, 4001, "10.96.0.1:53", true)
	n.wantFlows(t, flow1)
	ctx := aggregatortest.Context(t)
	other := d.Dial(t, "other")
	for _, elements := range [][]string{{dnsTo1}, {dnsTo2}, {dnsTo1}} {
		f := fronts(elements...)
		f.Tables[0].Name, f.Tables[0].Chains = "other", nil
		mustApply(t, other, f)
	}
	if _, err := d.Aggregator.Delete(ctx, "other", "services"); err != nil {
		t.Fatal(err)
	}
	stop()
	n.wantFlows(t, flow1)
	d, stop = n.run(t)
	n.publish(t, d, dnsTo2)
	stop()
	n.wantFlows(t)
}
