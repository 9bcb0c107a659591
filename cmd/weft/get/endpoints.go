package get

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/frontends/services/model"
)

func newEndpointsCmd() *cobra.Command {
	var (
		conn   cli.Connection
		output cli.Output
	)
	cmd := &cobra.Command{
		Use:   "endpoints [NAMESPACE/]NAME",
		Short: "Show the endpoints of a Service that this node uses, and for which traffic",
		Long: `Show the endpoints of a Service that this node uses. USE is "cluster" for
endpoints that receive new flows under the traffic policy Cluster, "local" for
those under the policy Local, and "draining" for endpoints that only keep the
flows they have.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := parseServiceName(args[0])
			if err != nil {
				return err
			}
			state, err := readLocalState(cmd.Context(), &conn, &name)
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			return output.Write(w, viewState(state).Services, func() error { return printEndpoints(w, state) })
		},
		ValidArgsFunction: completeServices(&conn),
	}
	conn.AddFlags(cmd)
	output.AddFlag(cmd, "table", "json", "yaml")
	return cmd
}

// printEndpoints prints a row for each endpoint of each port.
func printEndpoints(w io.Writer, state *localState) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "PORT\tENDPOINT\tUSE\tON THIS NODE")
	for _, s := range state.Services {
		for i := range s.Ports {
			p := &s.Ports[i]
			for f := range model.Families {
				for _, e := range usesOf(&p.Backends[f]) {
					here := "no"
					if e.Local {
						here = "yes"
					}
					fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", portName(p), e.Addr, list(e.uses), here)
				}
			}
		}
	}
	return tw.Flush()
}

// usedEndpoint is an endpoint and its uses.
type usedEndpoint struct {
	model.Endpoint
	uses []string
}

// usesOf merges the lists of a port's endpoints. Each list is sorted by address.
func usesOf(b *model.Backends) []usedEndpoint {
	lists := []struct {
		use string
		in  []model.Endpoint
	}{
		{"cluster", slices.Collect(b.Cluster.All())}, {"local", slices.Collect(b.Local.All())}, {"draining", slices.Collect(b.Draining.All())},
	}
	var out []usedEndpoint
	for {
		least := -1
		for i := range lists {
			if len(lists[i].in) > 0 && (least < 0 || lists[i].in[0].Addr.Compare(lists[least].in[0].Addr) < 0) {
				least = i
			}
		}
		if least < 0 {
			return out
		}
		e := usedEndpoint{Endpoint: lists[least].in[0]}
		for i := range lists {
			if l := &lists[i]; len(l.in) > 0 && l.in[0].Addr == e.Addr {
				e.uses = append(e.uses, l.use)
				l.in = l.in[1:]
			}
		}
		out = append(out, e)
	}
}
