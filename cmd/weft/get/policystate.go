package get

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/frontends/policy/localstate/statepb"
)

// policyKind is a kind of objects of the NetworkPolicy frontend. missing is what the error says of
// a name that no object has.
func policyKind[E any](part func(*statepb.WatchResponse) []E, name func(E) string, missing string, rows func([]E, time.Time) *Rows) kind[[]E] {
	return kind[[]E]{func(ctx context.Context, conn *cli.Connection, args []string) ([]E, error) {
		all, err := policyPart(part)(ctx, conn)
		if err != nil || len(args) == 0 {
			return all, err
		}
		for _, want := range []string{args[0], "default/" + args[0]} {
			named := slices.DeleteFunc(slices.Clone(all), func(e E) bool { return name(e) != want })
			if len(named) > 0 {
				return named, nil
			}
		}
		return nil, fmt.Errorf("%s: %s on this node", args[0], missing)
	}, rows, policyChanges}
}

// policyChanges are the changes of the NetworkPolicy frontend's state.
var policyChanges = streamed(policyFrontend, func(ctx context.Context, conn grpc.ClientConnInterface) (grpc.ServerStreamingClient[statepb.WatchResponse], error) {
	return statepb.NewLocalStateClient(conn).Watch(ctx, &statepb.WatchRequest{})
})

// policyPart asks for a part of what this node enforces.
func policyPart[E any](part func(*statepb.WatchResponse) []E) func(context.Context, *cli.Connection) ([]E, error) {
	return func(ctx context.Context, conn *cli.Connection) ([]E, error) {
		state, err := readLocal(ctx, conn, policyFrontend, readPolicyState)
		if err != nil {
			return nil, err
		}
		return part(state), nil
	}
}

// readPolicyState reads what the node enforces over a connection, without the members of
// sets.
func readPolicyState(ctx context.Context, conn *client.Client) (*statepb.WatchResponse, error) {
	return merged(statepb.NewLocalStateClient(conn.Conn()).Watch(ctx, &statepb.WatchRequest{Once: true}))
}

// nameText returns the name of a policy as "namespace/name", or "name" for a
// ClusterNetworkPolicy.
func nameText(n *statepb.PolicyName) string {
	return strings.TrimPrefix(n.GetNamespace()+"/"+n.GetName(), "/")
}

// tierTexts are the words of tiers.
var tierTexts = map[statepb.Tier]string{
	statepb.Tier_TIER_ADMIN:          "Admin",
	statepb.Tier_TIER_NETWORK_POLICY: "NetworkPolicy",
	statepb.Tier_TIER_BASELINE:       "Baseline",
}

// ruleView is a rule of a policy in JSON and YAML.
type ruleView struct {
	Name   string `json:"name"`
	Action string `json:"action"`
	// Any, Pods and Addresses are the other ends: everyone, descriptions of sets of pods, and
	// ranges of addresses.
	Any       bool     `json:"anyAddress,omitempty"`
	Pods      []string `json:"pods,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
	// Ports are texts such as "tcp 80-90", and descriptions of named ports.
	AllPorts bool     `json:"allPorts,omitempty"`
	Ports    []string `json:"ports,omitempty"`
}

// viewRules returns rules, in which sets are described by their comments.
func viewRules(rules []*statepb.Rule, sets map[string]string) []ruleView {
	described := func(id string) string { return sets[id] }
	return cli.Map(rules, func(r *statepb.Rule) ruleView {
		return ruleView{
			Name: r.GetName(), Action: cli.Word(r.GetAction().String(), "ACTION_"), Any: r.GetAny(), Addresses: r.GetBlocks(), AllPorts: r.GetAllPorts(),
			Pods: cli.Map(r.GetPods(), described), Ports: slices.Concat(cli.Map(r.GetPorts(), portText), cli.Map(r.GetNamedPorts(), described)),
		}
	})
}

// portText returns a range of ports as "tcp 80-90", "tcp 80" or "tcp".
func portText(p *statepb.PortRange) string {
	protocols := map[uint32]string{6: "tcp", 17: "udp", 132: "sctp"}
	out := cmp.Or(protocols[p.GetProtocol()], fmt.Sprintf("protocol %d", p.GetProtocol()))
	switch {
	case p.GetFirst() == 0 && p.GetLast() == 0:
		return out
	case p.GetFirst() == p.GetLast():
		return fmt.Sprintf("%s %d", out, p.GetFirst())
	default:
		return fmt.Sprintf("%s %d-%d", out, p.GetFirst(), p.GetLast())
	}
}

// isolates reports whether one of the policies of a direction isolates a pod.
func isolates(in []*statepb.PolicyName) bool {
	return slices.ContainsFunc(in, func(n *statepb.PolicyName) bool { return n.GetTier() == statepb.Tier_TIER_NETWORK_POLICY })
}
