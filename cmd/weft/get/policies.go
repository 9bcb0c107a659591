package get

import (
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	policystate "github.com/weft-proxy/weft/frontends/policy/localstate"
)

func newPoliciesCmd() *cobra.Command {
	return policies.command(&cobra.Command{
		Use:     "policies [[NAMESPACE/]NAME]",
		Short:   "Show the network policies that apply to pods of this node: pods, rules, and whether they are in force",
		Example: "  weft get policies\n  weft get policies shop/client -o yaml\n  weft get policies -w",
		Long: `Show the NetworkPolicies and ClusterNetworkPolicies that apply to pods of this
node, in the order in which they decide. INGRESS and EGRESS are the numbers of
rules, or "-" if the policy does not apply in that direction.
` + aboutState + `
A policy that is refused or left out accepts nothing. "(invalid parts)" says that parts
of the policy are not valid, and match nothing. Lines on the standard error have the
reasons. With -o json the rules are shown.`,
		Args: cobra.MaximumNArgs(1),
	}, policies.complete)
}

var policies = policyKind(policystate.TablePolicies, (*policystate.Policy).Text, "no such policy applies to a pod", policyRows)

func policyRows(policies []*policystate.Policy, _ time.Time) *Rows {
	t := newRows("POLICY", "TIER", "PRIORITY", "PODS", "INGRESS", "EGRESS", "STATE", "REVISION")
	last := lastRevision(policies, func(v *policystate.Policy) uint64 { return v.Revision })
	waits := waiting{names: make(map[string][]string)}
	rules := func(v *policystate.Policy, direction string, rules []policystate.Rule) string {
		if !slices.Contains(v.Directions, direction) {
			return "-"
		}
		return strconv.Itoa(len(rules))
	}
	for _, v := range policies {
		priority := "-"
		if v.Priority != nil {
			priority = strconv.Itoa(int(*v.Priority))
		}
		state := v.State
		if len(v.Problems) > 0 {
			state += " (invalid parts)"
		}
		t.Add(v.Text(), v.Tier, priority, len(v.Pods), rules(v, "ingress", v.Ingress), rules(v, "egress", v.Egress), state, revision(v.Revision, last))
		waits.add(t, v.Text(), &v.OutcomeRow)
		for _, p := range v.Problems {
			t.note("%s: %s", v.Text(), p)
		}
	}
	waits.note(t)
	return t
}
