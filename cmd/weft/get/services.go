package get

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/frontends/services/model"
)

func newServicesCmd() *cobra.Command {
	return serviceQuery(&cobra.Command{
		Use:   "services [[NAMESPACE/]NAME]",
		Short: "Show how this node serves each Service: addresses, policies and numbers of endpoints",
		Long: `Show each port of each Service as this node serves it: its addresses, its
traffic policies, and the number of endpoints that receive new flows. The last
line counts the objects received from the API, and the changes they made.`,
		Args: cobra.MaximumNArgs(1),
	}, func(state *localState) any { return viewState(state) }, printServices)
}

// serviceQuery completes a subcommand that prints the state of one Service or of all, as
// text, or what view makes of it as JSON or YAML.
func serviceQuery(cmd *cobra.Command, view func(*localState) any, print func(io.Writer, *localState) error) *cobra.Command {
	var conn cli.Connection
	cmd.ValidArgsFunction = completeServices(&conn)
	return show(cmd, &conn, "table", func(ctx context.Context, args []string) (*localState, error) {
		if len(args) == 0 {
			return readLocalState(ctx, &conn, nil)
		}
		name, err := parseServiceName(args[0])
		if err != nil {
			return nil, err
		}
		return readLocalState(ctx, &conn, &name)
	}, view, print)
}

// completeServices completes the name of one Service.
func completeServices(c *cli.Connection) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		state, err := readLocalState(cmd.Context(), c, nil)
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

// printServices prints a row for each port, then the counters.
func printServices(w io.Writer, state *localState) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "SERVICE\tPORT\tCLUSTER-IP\tEXTERNAL\tNODEPORT\tPOLICY\tAFFINITY\tENDPOINTS\tLOCAL")
	for _, s := range state.Services {
		for i := range s.Ports {
			p := &s.Ports[i]
			var external []string
			cluster, local := 0, 0
			for f := range model.Families {
				for _, e := range p.External[f] {
					external = append(external, e.Addr.String())
				}
				cluster += p.Backends[f].Cluster.Len()
				for e := range p.Backends[f].Cluster.All() {
					if e.Local {
						local++
					}
				}
			}
			nodePort, affinity := "-", "-"
			if p.NodePort != 0 {
				nodePort = fmt.Sprint(p.NodePort)
			}
			if s.Affinity != 0 {
				affinity = s.Affinity.String()
			}
			fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\n", s.Name, portName(p), joined(addressTexts(p.ClusterIPs)), joined(external),
				nodePort, policies(s), affinity, cluster, local)
		}
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	c := state.counters
	_, err := fmt.Fprintf(w, "\nrevision %d; events: %d services, %d slices, %d nodes, %d service CIDRs; changes: %d services, %d nodes; conflicts %d, fields left out %d\n",
		state.Revision, c.GetServiceEvents(), c.GetSliceEvents(), c.GetNodeEvents(), c.GetServiceCidrEvents(),
		c.GetServiceChanges(), c.GetNodeChanges(), c.GetConflicts(), c.GetSkipped())
	return err
}

// portName returns "80/tcp", or "http:80/tcp" for a port with a name.
func portName(p *model.Port) string {
	text := fmt.Sprintf("%d/%s", p.Number, p.Protocol)
	if p.Name != "" {
		text = p.Name + ":" + text
	}
	return text
}

// policies returns the traffic policies that are not the default.
func policies(s *model.Service) string {
	var out []string
	if s.InternalLocal {
		out = append(out, "internal=Local")
	}
	if s.ExternalLocal {
		out = append(out, "external=Local")
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
