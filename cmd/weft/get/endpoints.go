package get

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func newEndpointsCmd() *cobra.Command {
	return serviceQuery(&cobra.Command{
		Use:   "endpoints [NAMESPACE/]NAME",
		Short: "Show the endpoints of a Service that this node uses, and for which traffic",
		Long: `Show the endpoints of a Service that this node uses. USE is "cluster" for
endpoints that receive new flows under the traffic policy Cluster, "local" for
those under the policy Local, and "draining" for endpoints that only keep the
flows they have.`,
		Args: cobra.ExactArgs(1),
	}, func(state *stateView) []serviceView { return state.Services }, printEndpoints)
}

// printEndpoints prints a row for each endpoint of each port.
func printEndpoints(w io.Writer, services []serviceView) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "PORT\tENDPOINT\tUSE\tON THIS NODE")
	for _, s := range services {
		for _, p := range s.Ports {
			for _, e := range p.Endpoints {
				here := "no"
				if e.Local {
					here = "yes"
				}
				fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", p.text(), e.Address, joined(e.Use), here)
			}
		}
	}
	return tw.Flush()
}
