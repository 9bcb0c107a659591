package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/weft-proxy/weft/frontends/services/model"
)

const (
	maxProbes = 128
	// patience is for an answer.
	patience = 700 * time.Millisecond
)

type probe struct {
	service string
	addr    netip.AddrPort
	local   bool
	err     error
}

func checkEndpoints(ctx context.Context, n *node, r *findings) error {
	state, err := n.services()
	if err != nil {
		return err
	}
	probes := endpointsOf(state.Services)
	var all sync.WaitGroup
	for i := range probes {
		all.Go(func() { probes[i].err = ask(ctx, probes[i].addr) })
	}
	all.Wait()
	r.judge(n, probes)
	return nil
}

// endpointsOf returns this node's endpoints first.
func endpointsOf(services []*model.Service) []probe {
	var out []probe
	seen := make(map[netip.AddrPort]bool)
	for _, s := range services {
		for i := range s.Ports {
			p := &s.Ports[i]
			if p.Protocol != model.TCP {
				continue
			}
			for f := range p.Backends {
				for e := range p.Backends[f].Cluster.All() {
					if !seen[e.Addr] {
						seen[e.Addr] = true
						out = append(out, probe{service: s.Name.String(), addr: e.Addr, local: e.Local})
					}
				}
			}
		}
	}
	near := slices.DeleteFunc(slices.Clone(out), func(p probe) bool { return !p.local })
	far := slices.DeleteFunc(out, func(p probe) bool { return p.local })
	out = append(near, far...)
	return out[:min(len(out), maxProbes)]
}

func ask(ctx context.Context, addr netip.AddrPort) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr.String())
	if err != nil {
		return err
	}
	return c.Close()
}

// judge disregards silent endpoints if the connection tracking table is full.
func (r *findings) judge(n *node, probes []probe) {
	var refused, silent, unreachable []string
	for _, p := range probes {
		name := p.addr.String() + " of " + p.service
		switch {
		case p.err == nil:
		case errors.Is(p.err, syscall.ECONNREFUSED):
			refused = append(refused, name)
		case errors.Is(p.err, syscall.EHOSTUNREACH), errors.Is(p.err, syscall.ENETUNREACH):
			unreachable = append(unreachable, name)
		default:
			silent = append(silent, name)
		}
	}
	if len(silent) > 0 && r.lost(n, fmt.Sprintf("%d endpoints, such as %s", len(silent), silent[0])) {
		silent = nil
	}
	r.addSome(refused, "%d endpoints refuse connections: %s", "Connections to the Service that are given to them fail",
		"Compare the Service's targetPort with the port that the pod listens on, and its readiness probe with whether it serves")
	r.addSome(unreachable, "%d endpoints cannot be reached from this node: %s", "The node has no route to them, or the host of that address does not answer",
		"Look at the routes (`ip route get ADDRESS`) and at the network plugin of both nodes")
	r.addSome(silent, "%d endpoints do not answer this node: %s", "Connections to the Service that are given to them hang",
		"Ask on the endpoint's node what drops packets of this one: `weft explain --from ADDRESS-OF-THIS-NODE --to ENDPOINT`; then look at the network plugin of both nodes")
}
