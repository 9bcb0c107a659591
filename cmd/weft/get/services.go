package get

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/frontends/services/localstate"
	"github.com/weft-proxy/weft/frontends/services/model"
)

var servedServices = kind[*ServiceState]{func(ctx context.Context, conn *cli.Connection, args []string) (*ServiceState, error) {
	var name model.Key
	if len(args) > 0 {
		var err error
		if name, err = ParseServiceName(args[0]); err != nil {
			return nil, err
		}
	}
	return ReadServices(ctx, conn, name)
}, stateRows, serviceChanges}

var serviceChanges = watched(servicesFrontend, localstate.TableServices)

// CompleteServices completes the name of a Service.
func CompleteServices(conn *cli.Connection) cobra.CompletionFunc {
	return servedServices.complete(conn)
}

func newServicesCmd() *cobra.Command {
	return servedServices.command(&cobra.Command{
		Use:   "services [[NAMESPACE/]NAME]",
		Short: "Show how this node serves each Service: addresses, policies, numbers of endpoints, and whether it is in force",
		Long: `Show each port of each Service as this node should serve it: its addresses, its
traffic policies, and the number of endpoints that receive new flows.
` + aboutState + `
Lines on the standard error have the reasons, and count the objects received from the
API and the changes they made.`,
		Example: `  weft get services
  weft get services kube-system/kube-dns -o yaml
  weft get services -w`,
		Args: cobra.MaximumNArgs(1),
	}, CompleteServices)
}

// Services returns a row for each port.
func Services(services []localstate.Service) *Rows {
	t := newRows("SERVICE", "PORT", "CLUSTER-IP", "EXTERNAL", "NODEPORT", "POLICY", "AFFINITY", "ENDPOINTS", "LOCAL", "STATE", "REVISION")
	t.key = 2
	last := lastRevision(services, func(s localstate.Service) uint64 { return s.Revision })
	waits := waiting{names: make(map[string][]string)}
	var ignored []string
	for i := range services {
		s := &services[i]
		name := s.Namespace + "/" + s.Name
		if s.ExternalIPsIgnored {
			ignored = append(ignored, name)
		}
		waits.add(t, name, &s.OutcomeRow)
		for i := range s.Ports {
			p := &s.Ports[i]
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
			t.Add(name, portText(p), addresses(p.ClusterIPs), addresses(external(p)), nodePort, trafficPolicies(s), affinity, cluster, local, s.State, revision(s.Revision, last))
		}
	}
	waits.note(t)
	if len(ignored) > 0 {
		t.note("%d have external IPs that are ignored (feature gate AllowServiceExternalIPs): %s", len(ignored), cli.Some(ignored))
	}
	return t
}

func stateRows(state *ServiceState, _ time.Time) *Rows {
	t, c := Services(state.Services), state.Model.Stats
	t.note("revision %d; events: %d services, %d slices, %d nodes, %d service CIDRs; changes: %d services, %d nodes; conflicts %d, fields left out %d",
		state.Revision, c.ServiceEvents, c.SliceEvents, c.NodeEvents, c.ServiceCIDREvents,
		c.ServiceChanges, c.NodeChanges, c.Conflicts, c.Skipped)
	return t
}

// trafficPolicies leaves out default policies.
func trafficPolicies(s *localstate.Service) string {
	var out []string
	if s.InternalTrafficPolicy == localstate.PolicyLocal {
		out = append(out, "internal="+localstate.PolicyLocal)
	}
	if s.ExternalTrafficPolicy == localstate.PolicyLocal {
		out = append(out, "external="+localstate.PolicyLocal)
	}
	return joined(out)
}

func joined(in []string) string { return cmp.Or(strings.Join(in, ","), "-") }

func addresses(in []netip.Addr) string { return joined(cli.Map(in, netip.Addr.String)) }
