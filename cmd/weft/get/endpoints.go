package get

import (
	"cmp"
	"context"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/frontends/services/model"
)

func newEndpointsCmd() *cobra.Command {
	return kind[[]serviceView]{func(ctx context.Context, conn *cli.Connection, args []string) ([]serviceView, error) {
		name, err := ParseServiceName(args[0])
		if err != nil {
			return nil, err
		}
		return readEndpoints(ctx, conn, name)
	}, func(services []serviceView, _ time.Time) *Rows { return endpointRows(services) }, serviceChanges}.command(&cobra.Command{
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

func readEndpoints(ctx context.Context, conn *cli.Connection, name model.Key) ([]serviceView, error) {
	state, err := readService(ctx, conn, name)
	if err != nil {
		return nil, err
	}
	candidates, err := ReadCandidates(ctx, conn, name)
	if err != nil {
		return nil, err
	}
	for i := range state.Services {
		state.Services[i].replaceEndpoints(candidates)
	}
	return state.Services, nil
}

// Endpoints returns a row for each endpoint of each port, including unused endpoints.
func Endpoints(ctx context.Context, conn *cli.Connection, name model.Key) (*Rows, error) {
	services, err := readEndpoints(ctx, conn, name)
	if err != nil {
		return nil, err
	}
	return endpointRows(services), nil
}

func (s *serviceView) replaceEndpoints(candidates []model.Candidate) {
	for i := range s.Ports {
		p := &s.Ports[i]
		p.Endpoints = []endpointView{}
		for _, c := range candidates {
			if c.Port == p.Name && c.Protocol == p.protocol {
				p.Endpoints = append(p.Endpoints, s.viewCandidate(p, c))
			}
		}
	}
}

func (s *serviceView) viewCandidate(p *portView, c model.Candidate) endpointView {
	internal, external := c.Why(s.InternalTrafficPolicy == policyLocal), c.Why(s.ExternalTrafficPolicy == policyLocal)
	outside := p.NodePort != 0 || len(p.external) > 0
	out := endpointView{Address: c.Addr, Use: []string{}, Local: c.Local, Excluded: internal}
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
	}{{"cluster", c.Cluster && (outside || s.InternalTrafficPolicy != policyLocal)}, {"local", c.ForLocal}, {"draining", c.Draining}} {
		if list.in {
			out.Use = append(out.Use, list.use)
		}
	}
	return out
}

// EndpointText returns the address of an endpoint, with the port if it is not 0.
func EndpointText(addr netip.AddrPort) string {
	if addr.Port() == 0 {
		return addr.Addr().String()
	}
	return addr.String()
}

func endpointRows(services []serviceView) *Rows {
	t := newRows("PORT", "ENDPOINT", "USE", "ON THIS NODE", "WHY NOT")
	t.key = 2
	waits := waiting{names: make(map[string][]string)}
	for i := range services {
		s := &services[i]
		waits.add(t, s.Namespace+"/"+s.Name, &s.outcomeView)
		for _, p := range s.Ports {
			for _, e := range p.Endpoints {
				here := "no"
				if e.Local {
					here = "yes"
				}
				t.Add(p.text(), EndpointText(e.Address), joined(e.Use), here, cmp.Or(e.Excluded, "-"))
			}
		}
	}
	waits.note(t)
	return t
}
