package get

import (
	"fmt"
	"io"
	"iter"
	"net/netip"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/frontends/services/model"
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
	}, func(state *localState) any { return viewState(state).Services }, printEndpoints)
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
					fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", portName(p), e.Addr, joined(e.uses), here)
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

// usesOf returns the endpoints of a port by address.
func usesOf(b *model.Backends) []usedEndpoint {
	var out []usedEndpoint
	for _, list := range []struct {
		use       string
		endpoints iter.Seq[model.Endpoint]
	}{{"cluster", b.Cluster.All()}, {"local", b.Local.All()}, {"draining", b.Draining.All()}} {
		for e := range list.endpoints {
			i, found := slices.BinarySearchFunc(out, e.Addr, func(u usedEndpoint, addr netip.AddrPort) int { return u.Addr.Compare(addr) })
			if !found {
				out = slices.Insert(out, i, usedEndpoint{Endpoint: e})
			}
			out[i].uses = append(out[i].uses, list.use)
		}
	}
	return out
}
