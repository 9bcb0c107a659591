package get

import (
	"cmp"
	"context"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/frontends/services/localstate"
	"github.com/weft-proxy/weft/frontends/services/model"
)

func newEndpointsCmd() *cobra.Command {
	return kind[[]localstate.Service]{func(ctx context.Context, conn *cli.Connection, args []string) ([]localstate.Service, error) {
		name, err := ParseServiceName(args[0])
		if err != nil {
			return nil, err
		}
		return readEndpoints(ctx, conn, name)
	}, endpointRows, serviceChanges}.command(&cobra.Command{
		Use:   "endpoints [NAMESPACE/]NAME",
		Short: "Show the endpoints of a Service, for which traffic this node uses them, and why not",
		Long: `Show the endpoints of a Service. USE is "cluster" for endpoints that receive new
flows under the traffic policy Cluster, "local" for those under the policy
Local, and "draining" for endpoints that only keep the flows they have. WHY NOT
is why an endpoint does not receive new flows, or those of some addresses.`,
		Example: `  weft get endpoints kube-system/kube-dns
  weft get endpoints web -w`,
		Args: cobra.ExactArgs(1),
	}, CompleteServices)
}

func readEndpoints(ctx context.Context, conn *cli.Connection, name model.Key) ([]localstate.Service, error) {
	state, err := ReadServices(ctx, conn, name)
	if err != nil {
		return nil, err
	}
	candidates, err := ReadCandidates(ctx, conn, name)
	if err != nil {
		return nil, err
	}
	for i := range state.Services {
		replaceEndpoints(&state.Services[i], candidates)
	}
	return state.Services, nil
}

// Endpoints returns a row for each endpoint of each port, also unused.
func Endpoints(ctx context.Context, conn *cli.Connection, name model.Key) (*Rows, error) {
	services, err := readEndpoints(ctx, conn, name)
	if err != nil {
		return nil, err
	}
	return endpointRows(services, time.Time{}), nil
}

func replaceEndpoints(s *localstate.Service, candidates []model.Candidate) {
	for i := range s.Ports {
		p := &s.Ports[i]
		p.Endpoints = []localstate.Endpoint{}
		for _, c := range candidates {
			if c.Port == p.Name && strings.EqualFold(c.Protocol.String(), p.Protocol) {
				p.Endpoints = append(p.Endpoints, viewCandidate(s, p, c))
			}
		}
	}
}

func viewCandidate(s *localstate.Service, p *localstate.Port, c model.Candidate) localstate.Endpoint {
	internal, external := c.Why(s.InternalTrafficPolicy == localstate.PolicyLocal), c.Why(s.ExternalTrafficPolicy == localstate.PolicyLocal)
	outside := p.NodePort != 0 || len(p.ExternalIPs)+len(p.LoadBalancerIPs) > 0
	out := localstate.Endpoint{Address: c.Addr, Use: []string{}, Local: c.Local, Excluded: internal}
	switch {
	case !outside || internal == external:
	case internal == "":
		out.Excluded = "from outside: " + external
	case external == "":
		out.Excluded = "by ClusterIP: " + internal
	default:
		out.Excluded = "by ClusterIP: " + internal + "; from outside: " + external
	}
	for _, list := range []struct {
		use string
		in  bool
	}{{"cluster", c.Cluster && (outside || s.InternalTrafficPolicy != localstate.PolicyLocal)}, {"local", c.ForLocal}, {"draining", c.Draining}} {
		if list.in {
			out.Use = append(out.Use, list.use)
		}
	}
	return out
}

// EndpointText returns an address, with the port if it is not 0.
func EndpointText(addr netip.AddrPort) string {
	if addr.Port() == 0 {
		return addr.Addr().String()
	}
	return addr.String()
}

func endpointRows(services []localstate.Service, _ time.Time) *Rows {
	t := newRows("PORT", "ENDPOINT", "USE", "ON THIS NODE", "WHY NOT")
	t.key = 2
	waits := waiting{names: make(map[string][]string)}
	for i := range services {
		s := &services[i]
		waits.add(t, s.Namespace+"/"+s.Name, &s.OutcomeRow)
		for i := range s.Ports {
			p := &s.Ports[i]
			for _, e := range p.Endpoints {
				here := "no"
				if e.Local {
					here = "yes"
				}
				t.Add(portText(p), EndpointText(e.Address), joined(e.Use), here, cmp.Or(e.Excluded, "-"))
			}
		}
	}
	waits.note(t)
	return t
}
