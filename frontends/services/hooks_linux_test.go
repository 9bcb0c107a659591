package services

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// TestHooksOnDemand: the chains for source ranges are on their hooks while a Service has
// any, and a source that is not allowed never gets through while they come and go; the one on
// input is there while a Service has no endpoints.
//
// Behaviour: 166.
func TestHooksOnDemand(t *testing.T) {
	c := newCluster(t)
	_, p := c.start(t, []*model.Service{newService(1, "2")})
	limited := func() *model.Service { return allow(newService(2, "3"), podAddr(0, 1), podAddr(1, 1)) }
	want := func(chain string, is bool) {
		t.Helper()
		if list := c.node.ListRuleset(t); strings.Contains(list, "chain "+chain+" {") != is {
			t.Errorf("chain %s is there: %t, want %t:\n%s", chain, !is, is, list)
		}
	}
	want("firewall-prerouting", false)
	want("filter-input", false)

	// Before it exists, and after, the world answers at the address of the Service.
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for f := range model.NumFamilies {
		wg.Go(func() {
			for asked := 0; ; asked++ {
				select {
				case <-stop:
					t.Logf("%s: asked %d times", f, asked)
					return
				default:
				}
				if pod, _, err := askFrom(c.ext, netip.Addr{}, "tcp", place(f, "lb 2"), 20*time.Millisecond); err == nil && pod != "world" {
					t.Errorf("%s: %s answered a client that is not allowed", f, pod)
					return
				}
			}
		})
	}
	for range 10 {
		p.put(t, limited())
		want("firewall-prerouting", true)
		want("firewall-output", true)
		for f := range model.NumFamilies {
			c.send(t, flow{"pod1", "lb 2", "pod3"}, f, "tcp")
			c.send(t, flow{"pod2", "lb 2", "dropped"}, f, "udp")
			c.send(t, flow{"node", "lb 2", "dropped"}, f, "tcp")
		}
		p.drop(t, "s2")
		want("firewall-prerouting", true)
		p.sweep(t)
		want("firewall-prerouting", false)
		want("firewall-output", false)
	}
	close(stop)
	wg.Wait()

	p.put(t, newService(3))
	want("filter-input", true)
	for f := range model.NumFamilies {
		t.Run(fmt.Sprintf("%s without endpoints", f), func(t *testing.T) { c.send(t, flow{"ext", "nodeport 3", "rejected"}, f, "tcp") })
	}
	p.put(t, newService(3, "2"))
	p.sweep(t)
	want("filter-input", false)
}
