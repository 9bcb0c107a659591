package get

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/frontends/policy/localstate/statepb"
)

func newPodsCmd() *cobra.Command {
	return pods.command(&cobra.Command{
		Use:     "pods [[NAMESPACE/]NAME]",
		Short:   "Show the pods of this node, and the network policies that apply to each",
		Example: "  weft get pods\n  weft get pods shop/client\n  weft get pods -w",
		Long: `Show the pods of this node that have addresses of their own, and the policies
that apply to each, in the order in which they decide. ISOLATED are the
directions in which only what a policy accepts passes. Policies apply to all
that a pod's interface sends and receives. A note names the pods whose interface
on the node is not known: theirs apply to addresses alone.
` + aboutState + `
"weft get policies" has the states of the policies.`,
		Args: cobra.MaximumNArgs(1),
	}, CompletePods)
}

var pods = policyKind(viewPods, PodView.text, "no pod of this name has an address of its own", podRows)

// CompletePods completes the name of a pod of this node.
func CompletePods(conn *cli.Connection) cobra.CompletionFunc { return pods.complete(conn) }

// PodView is a pod of this node with its own addresses, and the policies that apply to it.
type PodView struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	UID       string   `json:"uid"`
	Addresses []string `json:"addresses"`
	// the host's end of the pod's interface, empty if unknown
	Interface string `json:"interface,omitempty"`
	// policies, as "namespace/name" or "name"
	Ingress []string `json:"ingressPolicies"`
	Egress  []string `json:"egressPolicies"`
	// "ingress" and "egress"
	Isolated []string `json:"isolated"`
	outcomeView
}

func (v PodView) text() string { return v.Namespace + "/" + v.Name }

// ReadPods asks the NetworkPolicy frontend for the pods of this node.
func ReadPods(ctx context.Context, c *cli.Connection) ([]PodView, error) {
	return policyPart(viewPods)(ctx, c)
}

func viewPods(state *statepb.WatchResponse) []PodView {
	out := cli.Map(state.GetPods(), func(p *statepb.Pod) PodView {
		v := PodView{
			Namespace: p.GetNamespace(), Name: p.GetName(), UID: p.GetUid(), Addresses: p.GetAddresses(), Interface: p.GetInterface(),
			Ingress: cli.Map(p.GetIngress(), nameText), Egress: cli.Map(p.GetEgress(), nameText), Isolated: []string{},
			outcomeView: viewOutcome(p.GetOutcome()),
		}
		if isolates(p.GetIngress()) {
			v.Isolated = append(v.Isolated, "ingress")
		}
		if isolates(p.GetEgress()) {
			v.Isolated = append(v.Isolated, "egress")
		}
		return v
	})
	slices.SortFunc(out, func(a, b PodView) int {
		return strings.Compare(a.Namespace+"/"+a.Name+"/"+a.UID, b.Namespace+"/"+b.Name+"/"+b.UID)
	})
	return out
}

func podRows(pods []PodView, _ time.Time) *Rows {
	t := newRows("POD", "ADDRESSES", "INGRESS", "EGRESS", "ISOLATED", "STATE", "REVISION")
	last := lastRevision(pods, func(v *PodView) *outcomeView { return &v.outcomeView })
	waits := waiting{names: make(map[string][]string)}
	var unknown []string
	for i := range pods {
		p := &pods[i]
		if p.Interface == "" && len(p.Ingress)+len(p.Egress) > 0 {
			unknown = append(unknown, p.text())
		}
		t.Add(p.text(), joined(p.Addresses), joined(p.Ingress), joined(p.Egress), joined(p.Isolated), p.State, p.revision(last))
		waits.add(t, p.text(), &p.outcomeView)
	}
	waits.note(t)
	if len(unknown) > 0 {
		t.note("interface not known: %s: the policies apply to the addresses of these pods alone", cli.Some(unknown))
	}
	return t
}

// nameText returns "namespace/name", or "name" for a ClusterNetworkPolicy.
func nameText(n *statepb.PolicyName) string {
	return strings.TrimPrefix(n.GetNamespace()+"/"+n.GetName(), "/")
}

func isolates(in []*statepb.PolicyName) bool {
	return slices.ContainsFunc(in, func(n *statepb.PolicyName) bool { return n.GetTier() == statepb.Tier_TIER_NETWORK_POLICY })
}
