package services

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// TestAffinityOfAnEndpointThatLeft: the clients of an endpoint that left pick another,
// which they keep when it is back; all others keep theirs, over a restart of the
// aggregator too.
//
// Behaviour: 80, 81.
func TestAffinityOfAnEndpointThatLeft(t *testing.T) {
	c := newCluster(t)
	s := newStack(t, c.node)
	_, stop := s.aggregator(t)
	p := newPlane(t, s)
	sticky := func(pods ...string) *model.Service { return withAffinity(newService(1, pods...), time.Hour) }
	p.publish(t, model.Changes{Node: thisNode(), Services: []model.Change{{Name: model.Key{Namespace: "default", Name: "s1"}, New: sticky("1", "2", "3")}}})
	clients := c.clients(t, model.IPv4, 16)
	to := place(model.IPv4, "nodeport 1")
	had := make(map[netip.Addr]string)
	lost := 0
	for _, from := range clients {
		if had[from] = only(t, c.ext, from, "tcp", to, 1); had[from] == "pod3" {
			lost++
		}
	}
	if lost == 0 || lost == len(clients) {
		t.Fatalf("pod3 has %d of %d clients", lost, len(clients))
	}
	p.put(t, sticky("1", "2"))
	// The purge comes after the acknowledgement.
	await(t, "the entries of pod3 to go", func() bool {
		return !strings.Contains(c.node.Run(t, "nft", "list", "map", "ip", "weft", affinityMap(t, c, "tcp")), podAddr(model.IPv4, 3).String())
	})
	keep := func(what string) {
		t.Helper()
		for _, from := range clients {
			pod := only(t, c.ext, from, "tcp", to, 3)
			if had[from] == "pod3" {
				if pod == "pod3" {
					t.Errorf("%s: %s has an endpoint that left", what, from)
				}
				had[from] = pod
			}
			if pod != had[from] {
				t.Errorf("%s: %s has %s, and %s before", what, from, pod, had[from])
			}
		}
	}
	keep("it left")
	p.put(t, sticky("1", "2", "3"))
	keep("it is back")
	stop()
	s.aggregator(t)
	// Answered once the session is back.
	p.put(t, newService(3, "3"))
	keep("the aggregator restarted")
}
