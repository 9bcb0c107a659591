package e2e

import (
	"net/netip"
	"testing"
)

// labReachable checks the network without weft: every host is reachable, and addresses are not
// rewritten.
func labReachable(t *testing.T, e *env) {
	from := []asker{e.clients[0], e.clients[1], e.lab.Outside, e.lab.Nodes[0], e.lab.Nodes[1], e.lab.Control}
	for _, f := range from {
		for _, p := range e.web {
			for _, addr := range p.Addresses.All() {
				for _, network := range []string{"tcp", "udp"} {
					for _, port := range webPorts {
						a, err := f.Ask(e.ctx, network, netip.AddrPortFrom(addr, port), answerTime)
						if err != nil {
							t.Fatal(err)
						}
						if a.Pod != p.Name() || a.Port != port {
							t.Errorf("%s %s:%d from %s: answered by %s:%d", network, addr, port, f.Name(), a.Pod, a.Port)
						}
					}
				}
			}
		}
	}
	for i, c := range e.clients {
		for _, p := range e.web {
			for j, addr := range p.Addresses.All() {
				if got, want := e.client(t, c, "tcp", netip.AddrPortFrom(addr, 8080)), c.Addresses.All()[j]; got != want {
					t.Errorf("client-%d at %s: seen as %s, want %s", i+1, p.Name(), got, want)
				}
			}
		}
	}
}
