package isolation

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
)

// connection is open before the policy exists.
type connection struct {
	name      string
	site      *site
	from, to  *end
	direction string
	family    int
	// cut is true if the policy denies it.
	cut  bool
	conn net.Conn
}

// open makes connections between all kinds of addresses.
func (w *world) open(t *testing.T) []*connection {
	t.Helper()
	var all []*connection
	for _, s := range w.sites {
		for f := range 2 {
			for _, network := range []string{"tcp", "udp"} {
				for _, c := range s.planned(t, w, f) {
					name := fmt.Sprintf("%s: %s from %s %s to %s %s", s.plugin, network, c.from.name, c.src, c.to.name, c.dst)
					conn, err := c.from.dial(network, c.src, c.dst)
					if err != nil {
						t.Fatalf("%s, before the policy: %v", name, err)
					}
					t.Cleanup(func() { conn.Close() })
					direction := ""
					if c.from == s.isolated {
						direction = "from"
					} else if c.to == s.isolated && c.from != s.node {
						direction = "to"
					}
					all = append(all, &connection{name: name, site: s, from: c.from, to: c.to, direction: direction, family: f, cut: direction != "", conn: conn})
				}
			}
		}
	}
	return all
}

type plan struct {
	from, to *end
	src, dst netip.Addr
}

func (s *site) planned(t *testing.T, w *world, f int) []plan {
	between := func(from, to *end) []plan {
		return []plan{
			{from, to, from.own[f], to.own[f]}, {from, to, from.second[f], to.own[f]}, {from, to, from.own[f], to.second[f]},
		}
	}
	link := func(from, to *end) plan {
		at, here := to.local[f], from.local[f]
		switch {
		case f == 0:
		case to == s.node:
			_, at = s.gateway(t, from)
		case from == s.node:
			dev, local := s.gateway(t, to)
			return plan{from, to, scoped(local, dev), scoped(at, dev)}
		}
		return plan{from, to, scoped(here, from.device), scoped(at, from.device)}
	}
	var out []plan
	for _, pair := range [][2]*end{{s.isolated, s.free}, {s.isolated, s.node}, {s.isolated, w.outside}, {s.free, s.isolated}, {w.outside, s.isolated}, {s.free, s.peer}, {s.node, s.isolated}} {
		out = append(out, between(pair[0], pair[1])...)
	}
	out = append(out, link(s.isolated, s.node), link(s.free, s.node))
	if s.plugin == "bridged" {
		out = append(out, link(s.isolated, s.free), link(s.free, s.isolated), link(s.free, s.peer))
		// A port carries only the addresses in the status of its pod, also for its node.
		return slices.DeleteFunc(out, func(p plan) bool { return p.from == s.node && p.to == s.isolated && p.dst != s.isolated.own[f] })
	}
	return append(out, link(s.node, s.isolated))
}

// checkOpen: denied connections are cut, and the others continue.
func (w *world) checkOpen(open []*connection, r *result) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, c := range open {
		all.Go(func() {
			within := patience
			if c.cut {
				within = silence
			}
			got := answered(c.conn, within)
			mu.Lock()
			defer mu.Unlock()
			row := rowFree
			if c.cut {
				row = rowOpen
			}
			o := r.cell(row, c.direction, c.site.plugin)
			o.reached = true
			if c.cut {
				o.verb = "cut"
			}
			if got == c.cut {
				o.fails(c.family, got, fmt.Sprintf("%s, opened before the policy: answered: %t, want %t", c.name, got, !c.cut))
			}
		})
	}
	all.Wait()
}

// checkForged: the isolated pod sends packets of others' connections to both ends.
func (w *world) checkForged(t *testing.T, open []*connection, r *result) {
	t.Helper()
	w.begin(t, 0)
	var sent []*sample
	for _, c := range open {
		local, ok := c.conn.LocalAddr().(*net.UDPAddr)
		if c.from != c.site.free || c.cut || !ok {
			continue
		}
		near, far := local.AddrPort(), c.conn.RemoteAddr().(*net.UDPAddr).AddrPort()
		for _, to := range []*end{c.to, c.from} {
			src, dst := near, far
			if to == c.from {
				src, dst = far, near
			}
			gateway, _ := c.site.gateway(t, c.site.isolated)
			mac := gateway.HardwareAddr
			if c.site.plugin == "bridged" && to.pod != nil {
				mac = to.device.HardwareAddr
			}
			sent = append(sent, &sample{
				site: c.site, from: c.site.isolated, to: to, source: c.name, destination: to.name, frame: plain,
				packet: packet{
					from: c.site.isolated.device.HardwareAddr, to: mac, protocol: udp, id: uint16(firstID + len(sent)),
					src: src.Addr().WithZone(""), dst: dst.Addr().WithZone(""), ports: [2]uint16{src.Port(), dst.Port()},
				},
			})
		}
	}
	w.send(t, sent)
	w.drain(t)
	at := w.arrived(t)
	for _, c := range sent {
		o := r.cell(rowEstablished, "from", c.site.plugin)
		o.reached = true
		for _, e := range append(c.site.pods(), c.site.node, w.outside) {
			if e != c.from && at[e][c.id] {
				o.with++
				o.fails(c.family(), true, fmt.Sprintf("%s: arrived at %s", c, e.name))
			}
		}
	}
}

// checkProbes: a node reaches its pods, over each address.
func (w *world) checkProbes(t *testing.T, r *result) {
	for _, s := range w.sites {
		o := r.cell(rowNode, "to", s.plugin)
		o.reached, o.seen = true, true
		for f := range 2 {
			for _, network := range []string{"tcp", "udp"} {
				for _, p := range s.planned(t, w, f) {
					if p.from != s.node {
						continue
					}
					c, err := p.from.dial(network, p.src, p.dst)
					if err != nil {
						o.fails(f, false, fmt.Sprintf("%s: the node to the isolated pod: %v", s.plugin, err))
						continue
					}
					c.Close()
				}
			}
		}
	}
}
