package get

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/frontends/services/model"
)

func newEndpointsCmd() *cobra.Command {
	var conn cli.Connection
	cmd := &cobra.Command{
		Use:   "endpoints [NAMESPACE/]NAME",
		Short: "Show the endpoints of a Service, for which traffic this node uses them, and why not",
		Long: `Show the endpoints of a Service. USE is "cluster" for endpoints that receive new
flows under the traffic policy Cluster, "local" for those under the policy
Local, and "draining" for endpoints that only keep the flows they have. WHY NOT
is why an endpoint is not used under the policy Cluster.`,
		Example: `  weft get endpoints kube-system/kube-dns
  weft get endpoints web -w`,
		Args: cobra.ExactArgs(1),
	}
	cmd.ValidArgsFunction = firstOnly(CompleteServices(&conn))
	return tabulate(cmd, &conn, func(ctx context.Context, args []string) ([]serviceView, error) {
		name, err := ParseServiceName(args[0])
		if err != nil {
			return nil, err
		}
		return readEndpoints(ctx, &conn, name)
	}, func(services []serviceView, _ time.Time) *Rows { return endpointRows(services) }, serviceChanges(&conn))
}

// readEndpoints reads a Service with all its endpoints.
func readEndpoints(ctx context.Context, conn *cli.Connection, name model.Key) ([]serviceView, error) {
	snapshot, _, err := ReadServices(ctx, conn, name)
	if err != nil {
		return nil, err
	}
	candidates, err := ReadCandidates(ctx, conn, name)
	if err != nil {
		return nil, err
	}
	services := viewState(snapshot, nil).Services
	for i := range services {
		services[i].replaceEndpoints(candidates)
	}
	return services, nil
}

// Endpoints returns a row for each endpoint of each port of a Service, unused ones too.
func Endpoints(ctx context.Context, conn *cli.Connection, name model.Key) (*Rows, error) {
	services, err := readEndpoints(ctx, conn, name)
	if err != nil {
		return nil, err
	}
	return endpointRows(services), nil
}

// replaceEndpoints replaces the endpoints of the ports by candidates, also those that are not
// used.
func (s *serviceView) replaceEndpoints(candidates []model.Candidate) {
	for i := range s.Ports {
		p := &s.Ports[i]
		p.Endpoints = []endpointView{}
		for _, c := range candidates {
			if c.Port == p.Name && c.Protocol == p.protocol {
				p.Endpoints = append(p.Endpoints, viewCandidate(c))
			}
		}
	}
}

// viewCandidate returns a candidate for output.
func viewCandidate(c model.Candidate) endpointView {
	out := endpointView{Address: c.Addr, Use: []string{}, Local: c.Local, Excluded: c.Excluded.String()}
	for _, list := range []struct {
		use string
		in  bool
	}{{"cluster", c.Cluster}, {"local", c.ForLocal}, {"draining", c.Draining}} {
		if list.in {
			out.Use = append(out.Use, list.use)
		}
	}
	return out
}

// endpointRows returns a row for each endpoint of each port.
func endpointRows(services []serviceView) *Rows {
	t := newRows("PORT", "ENDPOINT", "USE", "ON THIS NODE", "WHY NOT")
	t.key = 2
	for _, s := range services {
		for _, p := range s.Ports {
			for _, e := range p.Endpoints {
				here, excluded := "no", "-"
				if e.Local {
					here = "yes"
				}
				if e.Excluded != "" {
					excluded = e.Excluded
				}
				t.Add(p.text(), e.Address, joined(e.Use), here, excluded)
			}
		}
	}
	return t
}
