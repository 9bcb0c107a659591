package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/frontends/services/model"
)

func newGetServicesCmd() *cobra.Command {
	var (
		conn   connection
		output outputFormat
	)
	cmd := &cobra.Command{
		Use:   "services [[NAMESPACE/]NAME]",
		Short: "Show what this node does for each Service: addresses, policies and numbers of endpoints",
		Long: `Show what the Service frontend of this node has decided for each port of each
Service: where it answers, the traffic policies, and how many endpoints get new
flows. Below are counters: how many objects came in, and how often that really
changed something.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var only *model.Key
			if len(args) > 0 {
				name, err := parseServiceName(args[0])
				if err != nil {
					return err
				}
				only = &name
			}
			state, err := conn.readLocalState(cmd.Context(), only)
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			return output.write(w, viewState(state), func() error { return printServices(w, state) })
		},
		ValidArgsFunction: conn.completeServices,
	}
	conn.addFlags(cmd)
	output.addFlag(cmd, "table", "json", "yaml")
	return cmd
}

// completeServices completes one name of a Service.
func (c *connection) completeServices(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.serviceNames(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
}

// printServices writes a row for each port, and the counters below.
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
			fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\n", s.Name, portName(p), list(addressTexts(p.ClusterIPs)), list(external),
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

// portName is "80/tcp", with the port's name if it has one.
func portName(p *model.Port) string {
	text := fmt.Sprintf("%d/%s", p.Number, p.Protocol)
	if p.Name != "" {
		text = p.Name + ":" + text
	}
	return text
}

// policies names the traffic policies that are not the default.
func policies(s *model.Service) string {
	var out []string
	if s.InternalLocal {
		out = append(out, "internal=Local")
	}
	if s.ExternalLocal {
		out = append(out, "external=Local")
	}
	return list(out)
}

// list is a cell of several values.
func list(in []string) string {
	if len(in) == 0 {
		return "-"
	}
	return strings.Join(in, ",")
}
