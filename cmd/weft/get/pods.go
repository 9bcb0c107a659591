package get

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	policystate "github.com/weft-proxy/weft/frontends/policy/localstate"
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

var pods = policyKind(policystate.TablePods, (*PodView).Text, "no pod of this name has an address of its own", podRows)

// CompletePods completes the name of a pod of this node.
func CompletePods(conn *cli.Connection) cobra.CompletionFunc { return pods.complete(conn) }

// PodView is a pod of this node with its policies.
type PodView = policystate.Pod

// ReadPods reads the pods of this node.
func ReadPods(ctx context.Context, c *cli.Connection) ([]*PodView, error) {
	return readTable[*PodView](ctx, c, policyFrontend, policystate.TablePods, nil)
}

func podRows(pods []*PodView, _ time.Time) *Rows {
	t := newRows("POD", "ADDRESSES", "INGRESS", "EGRESS", "ISOLATED", "STATE", "REVISION")
	last := lastRevision(pods, func(v *PodView) uint64 { return v.Revision })
	waits := waiting{names: make(map[string][]string)}
	var unknown []string
	for _, p := range pods {
		if p.Interface == "" && len(p.Ingress)+len(p.Egress) > 0 {
			unknown = append(unknown, p.Text())
		}
		t.Add(p.Text(), joined(p.Addresses), joined(p.Ingress), joined(p.Egress), joined(p.Isolated), p.State, revision(p.Revision, last))
		waits.add(t, p.Text(), &p.OutcomeRow)
	}
	waits.note(t)
	if len(unknown) > 0 {
		t.note("interface not known: %s: the policies apply to the addresses of these pods alone", cli.Some(unknown))
	}
	return t
}
