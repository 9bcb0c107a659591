package get

import (
	"context"
	"fmt"
	"io"
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
traffic policies, and the number of endpoints that receive new flows. The last
line counts the objects received from the API, and the changes they made.`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeServices(&conn),
	}
	return show(cmd, &conn, "table", func(ctx context.Context, args []string) (*stateView, error) {
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
	}, printServices)
}

// completeServices completes the name of one Service.
func completeServices(c *cli.Connection) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		state, _, err := ReadServices(cmd.Context(), c, model.Key{})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, s := range state.Services {
			names = append(names, s.Name.String())
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
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
			t.add(s.Namespace+"/"+s.Name, p.text(), joined(p.ClusterIPs), joined(p.external), nodePort, s.policies(), affinity, cluster, local)
		}
	}
	return t
}

// printServices prints a row for each port, then the counters.
func printServices(w io.Writer, state *stateView) error {
	if err := serviceRows(state.Services).write(w); err != nil {
		return err
	}
	c := state.counters
	_, err := fmt.Fprintf(w, "\nrevision %d; events: %d services, %d slices, %d nodes, %d service CIDRs; changes: %d services, %d nodes; conflicts %d, fields left out %d\n",
		state.Revision, c.GetServiceEvents(), c.GetSliceEvents(), c.GetNodeEvents(), c.GetServiceCidrEvents(),
		c.GetServiceChanges(), c.GetNodeChanges(), c.GetConflicts(), c.GetSkipped())
	return err
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
