package get

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/frontends/services/model"
)

func newServicesCmd() *cobra.Command {
	var conn cli.Connection
	cmd := &cobra.Command{
		Use:   "services [[NAMESPACE/]NAME]",
		Short: "Show how this node serves each Service: addresses, policies and numbers of endpoints",
		Long: `Show each port of each Service as this node serves it: its addresses, its
traffic policies, and the number of endpoints that receive new flows. A line on
the standard error counts the objects received from the API, and the changes they made.`,
		Example: `  weft get services
  weft get services kube-system/kube-dns -o yaml
  weft get services -w`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: firstOnly(CompleteServices(&conn)),
	}
	return tabulate(cmd, &conn, func(ctx context.Context, args []string) (*stateView, error) {
		var name model.Key
		if len(args) > 0 {
			var err error
			if name, err = ParseServiceName(args[0]); err != nil {
				return nil, err
			}
		}
		snapshot, counters, err := ReadServices(ctx, &conn, name)
		if err != nil {
			return nil, err
		}
		return viewState(snapshot, counters), nil
	}, stateRows, serviceChanges(&conn))
}

// readState reads all Services.
func readState(ctx context.Context, conn *cli.Connection) (*stateView, error) {
	snapshot, counters, err := ReadServices(ctx, conn, model.Key{})
	if err != nil {
		return nil, err
	}
	return viewState(snapshot, counters), nil
}

// Services returns a row for each port of the Services.
func Services(services []*model.Service) *Rows {
	views := make([]serviceView, len(services))
	for i, s := range services {
		views[i] = viewService(s)
	}
	return serviceRows(views)
}

// serviceRows returns a row for each port.
func serviceRows(services []serviceView) *Rows {
	t := newRows("SERVICE", "PORT", "CLUSTER-IP", "EXTERNAL", "NODEPORT", "POLICY", "AFFINITY", "ENDPOINTS", "LOCAL")
	t.key = 2
	for _, s := range services {
		for _, p := range s.Ports {
			cluster, local := 0, 0
			for _, e := range p.Endpoints {
				if slices.Contains(e.Use, "cluster") {
					cluster++
					if e.Local {
						local++
					}
				}
			}
			nodePort, affinity := "-", "-"
			if p.NodePort != 0 {
				nodePort = fmt.Sprint(p.NodePort)
			}
			if s.AffinitySeconds != 0 {
				affinity = (time.Duration(s.AffinitySeconds) * time.Second).String()
			}
			t.Add(s.Namespace+"/"+s.Name, p.text(), joined(p.ClusterIPs), joined(p.external), nodePort, s.policies(), affinity, cluster, local)
		}
	}
	return t
}

// stateRows returns a row for each port, and the counters as a note.
func stateRows(state *stateView, _ time.Time) *Rows {
	t, c := serviceRows(state.Services), state.counters
	t.note("revision %d; events: %d services, %d slices, %d nodes, %d service CIDRs; changes: %d services, %d nodes; conflicts %d, fields left out %d",
		state.Revision, c.GetServiceEvents(), c.GetSliceEvents(), c.GetNodeEvents(), c.GetServiceCidrEvents(),
		c.GetServiceChanges(), c.GetNodeChanges(), c.GetConflicts(), c.GetSkipped())
	return t
}

// policies returns the traffic policies that are not the default.
func (s *serviceView) policies() string {
	var out []string
	if s.InternalTrafficPolicy == policyLocal {
		out = append(out, "internal="+policyLocal)
	}
	if s.ExternalTrafficPolicy == policyLocal {
		out = append(out, "external="+policyLocal)
	}
	return joined(out)
}

// joined returns the cell for several values.
func joined(in []string) string {
	if len(in) == 0 {
		return "-"
	}
	return strings.Join(in, ",")
}
