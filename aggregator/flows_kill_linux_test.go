package aggregator_test

import (
	"testing"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// TestFlowsOfAKilledDaemon kills it at the commit that deletes a UDP service, before
// or after the kernel has it: the next one removes the service's flows where the
// kernel has no way for them any more, without being told of the service again, and
// no others.
//
// Behaviour: 112, 114.
func TestFlowsOfAKilledDaemon(t *testing.T) {
	const nodeFlow = "udp 4003 -> 10.1.0.2:30053 = 10.1.0.1:8080"
	for _, tt := range []struct {
		instant string
		left    []string
	}{
		{"before", []string{flow1, flowOther, nodeFlow}},
		{"after", []string{flowOther}},
	} {
		t.Run(tt.instant, func(t *testing.T) {
			n := newFlowNode(t)
			m := mortal{Socket: aggregatortest.Socket(t), StateDir: t.TempDir(), Flows: true}
			ctx := aggregatortest.Context(t)
			dial := func() *client.Client {
				c, err := client.Dial(ctx, client.Config{Socket: m.Socket, Publisher: "tester"})
				must(t, err)
				t.Cleanup(func() { _ = c.Close() })
				return c
			}
			life := m
			life.Instant, life.Commit = tt.instant, 2
			daemon := life.spawn(t, n.ns)
			_, err := dial().Apply(ctx, fronts(dnsTo1, otherTo1, nodeTo1))
			must(t, err)
			n.send(t, 4001, "10.96.0.1:53", true)
			n.send(t, 4002, "10.96.0.2:53", true)
			n.send(t, 4003, "10.1.0.2:30053", true)
			if _, err := dial().Apply(ctx, fronts(otherTo1)); err == nil {
				t.Fatal("the daemon lives on")
			}
			_ = daemon.Wait()
			n.wantFlows(t, flow1, flowOther, nodeFlow)
			if _, noted := state(t, m.StateDir); len(noted) == 0 {
				t.Fatal("nothing is noted")
			}

			m.spawn(t, n.ns)
			aggregatortest.Eventually(t, "the flows that were noted are removed", func() bool {
				_, noted := state(t, m.StateDir)
				return len(noted) == 0
			})
			n.wantFlows(t, tt.left...)
		})
	}
}
