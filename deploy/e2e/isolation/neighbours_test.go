package isolation

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// checkNeighbours: ARP and neighbour discovery work in both directions.
func (w *world) checkNeighbours(t *testing.T, r *result) {
	for _, s := range w.sites {
		for f, row := range []string{rowARP, rowDiscovery} {
			gateway := w.lab.Nodes[0].PodCIDRs[f].Addr().Next()
			if s.plugin == "bridged" {
				gateway = w.lab.Nodes[1].PodCIDRs[f].Addr().Next()
			}
			asks := []struct {
				direction string
				from      *end
				dev       string
				to        netip.Addr
			}{{"from", s.isolated, s.isolated.device.Name, gateway}, {"to", s.node, s.toward(s.isolated), s.isolated.own[f]}}
			if s.plugin == "bridged" {
				asks = append(asks, asks[0], asks[0])
				asks[2].to = s.free.own[f]
				asks[3].direction, asks[3].from, asks[3].to = "to", s.free, s.isolated.own[f]
			}
			for _, a := range asks {
				o := r.cell(row, a.direction, s.plugin)
				o.reached, o.seen = true, true
				if err := a.from.resolve(t, a.dev, a.to); err != nil {
					o.fails(f, false, fmt.Sprintf("%s: %s looks for %s on %s: %v", s.plugin, a.from.name, a.to, a.dev, err))
				}
			}
		}
	}
}

// resolve forgets a neighbour, and waits for the kernel to find it.
func (e *end) resolve(t *testing.T, dev string, to netip.Addr) error {
	t.Helper()
	e.ip(t, "neigh", "flush", "to", to.String(), "dev", dev)
	err := e.Do(func() error {
		c, err := net.Dial("udp", netip.AddrPortFrom(to, 9).String())
		if err == nil {
			_, err = c.Write([]byte{1})
			c.Close()
		}
		return err
	})
	if err != nil {
		return err
	}
	return lab.Within(t.Context(), patience, func() error {
		if entry := e.ip(t, "neigh", "show", "to", to.String(), "dev", dev); !strings.Contains(entry, "REACHABLE") {
			return errors.New("no answer: " + entry)
		}
		return nil
	})
}
