package model

import (
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// narrowings are the addresses of Changes.Narrowed:
//
//   - of a new pod, or new to their pod, if a policy may deny something: earlier connections may
//     exist;
//   - of a pod that became isolated, lost a policy with unique rules, or got a policy that may
//     deny more;
//   - of the pods of a policy with changed rules, unless everything is still allowed;
//   - of members that left a set of an accepting rule, or entered a set of a denying rule.
type narrowings map[netip.Addr]struct{}

func (n narrowings) set(s *set, c *SetChange) {
	members := c.Removed
	switch s.action {
	case Deny:
		members = c.Added
	case Pass:
		members = slices.Concat(c.Removed, c.Added)
	}
	for _, m := range members {
		n[m.Addr] = struct{}{}
	}
}

// policy adds the addresses of pods with a policy that allows less.
func (n narrowings) policy(old, now *Policy, pods map[types.UID]*Pod) {
	for d := range NumDirections {
		if !lessInRules(old.ID.Tier, old.Rules[d], now.Rules[d]) {
			continue
		}
		for _, p := range pods {
			if slices.Contains(p.Policies[d], now.ID) {
				for _, a := range p.Addresses {
					n[a] = struct{}{}
				}
			}
		}
	}
}

// narrowPod takes the rules of old policies as last reported, and the rules of new policies as they
// are.
func (ps *policies) narrowPod(c PodChange, narrowed narrowings) {
	if c.New == nil {
		return
	}
	old := c.Old
	if old == nil {
		old = &Pod{}
	}
	less, restricted := false, false
	for d := range NumDirections {
		less = less || c.Old != nil && ps.lessAllowed(old.Policies[d], c.New.Policies[d], d)
		restricted = restricted || ps.lessAllowed(nil, c.New.Policies[d], d)
	}
	for _, a := range c.New.Addresses {
		if less || restricted && !slices.Contains(old.Addresses, a) {
			narrowed[a] = struct{}{}
		}
	}
}

// lessAllowed ignores changes inside a policy: see narrowings.policy.
func (ps *policies) lessAllowed(old, now []PolicyID, d Direction) bool {
	was, is := OfTier(old, TierNetworkPolicy), OfTier(now, TierNetworkPolicy)
	if len(is) > 0 && len(was) == 0 || ps.lessInOrder(OfTier(old, TierAdmin), OfTier(now, TierAdmin), d) {
		return true
	}
	if len(is) > 0 {
		return slices.ContainsFunc(was, func(id PolicyID) bool {
			return !slices.Contains(is, id) && len(ps.reportedRules(id, d)) > 0
		})
	}
	baseline := OfTier(old, TierBaseline)
	if len(was) > 0 {
		// The baseline now decides about traffic that a NetworkPolicy may have accepted.
		baseline = nil
	}
	return ps.lessInOrder(baseline, OfTier(now, TierBaseline), d)
}

// lessInOrder returns false only if added policies accept, removed policies denied, and the others
// keep their order.
func (ps *policies) lessInOrder(old, now []PolicyID, d Direction) bool {
	var kept, keptNow []PolicyID
	for _, id := range old {
		switch {
		case slices.Contains(now, id):
			kept = append(kept, id)
		case !allOf(ps.reportedRules(id, d), Deny):
			return true
		}
	}
	for _, id := range now {
		switch {
		case slices.Contains(old, id):
			keptNow = append(keptNow, id)
		case !allOf(ps.byID[id].rules().policy.Rules[d], Accept):
			return true
		}
	}
	return !slices.Equal(kept, keptNow)
}

func (ps *policies) reportedRules(id PolicyID, d Direction) []Rule {
	if a := ps.active[id]; a != nil && a.reported != nil {
		return a.reported.Rules[d]
	}
	return nil
}

func allOf(rules []Rule, a Action) bool {
	return !slices.ContainsFunc(rules, func(r Rule) bool { return r.Action != a })
}

// lessInRules compares each rule with a few others, in linear time.
func lessInRules(t Tier, old, now []Rule) bool {
	if t == TierNetworkPolicy {
		return lessInSet(old, now)
	}
	return lessInSequence(old, now)
}

// maxCompared limits the new rules compared with a changed old rule.
const maxCompared = 64

// lessInSet compares rules that all accept, in any order.
func lessInSet(old, now []Rule) bool {
	same := make(map[string]struct{}, len(now))
	for i := range now {
		same[now[i].key()] = struct{}{}
	}
	was := make(map[string]struct{}, len(old))
	for i := range old {
		was[old[i].key()] = struct{}{}
	}
	var changed []*Rule
	for i := range now {
		if _, ok := was[now[i].key()]; !ok && len(changed) < maxCompared {
			changed = append(changed, &now[i])
		}
	}
	for i := range old {
		r := &old[i]
		if _, ok := same[r.key()]; ok || r.empty() {
			continue
		}
		if i < len(now) && now[i].covers(r) {
			continue
		}
		if !slices.ContainsFunc(changed, func(n *Rule) bool { return n.covers(r) }) {
			return true
		}
	}
	return false
}

// lessInSequence skips new accepting and old denying rules, and compares the others in order.
func lessInSequence(old, now []Rule) bool {
	i, j := 0, 0
	for i < len(old) || j < len(now) {
		switch {
		case i < len(old) && j < len(now) && equalMatch(&old[i], &now[j]),
			i < len(old) && j < len(now) && old[i].Action == Accept && now[j].Action == Accept && now[j].covers(&old[i]),
			i < len(old) && j < len(now) && old[i].Action == Deny && now[j].Action == Deny && old[i].covers(&now[j]):
			i++
			j++
		case i < len(old) && old[i].Action == Deny:
			i++
		case j < len(now) && now[j].Action == Accept:
			j++
		default:
			return true
		}
	}
	return false
}

func (r *Rule) empty() bool {
	return !r.Any && len(r.Pods)+len(r.Blocks) == 0 || !r.AllPorts && len(r.Ports)+len(r.NamedPorts) == 0
}

// key is equal for rules with the same effect, regardless of names.
func (r *Rule) key() string {
	return fmt.Sprintf("%v %v %v %v %v %q %q", r.Action, r.Any, r.AllPorts, r.Ports, r.Blocks, r.Pods, r.NamedPorts)
}

func (r *Rule) covers(o *Rule) bool {
	peers := r.Any || !o.Any && containsAll(r.Pods, o.Pods) && coversRanges(r.Blocks, o.Blocks)
	ports := r.AllPorts || !o.AllPorts && containsAll(r.NamedPorts, o.NamedPorts) && coversPorts(r.Ports, o.Ports)
	return o.empty() || peers && ports
}

// containsAll takes sorted lists.
func containsAll(a, b []SetID) bool {
	for _, id := range b {
		at, ok := slices.BinarySearch(a, id)
		if !ok {
			return false
		}
		a = a[at:]
	}
	return true
}

// coversRanges takes merged lists.
func coversRanges(a, b []Range) bool {
	for _, r := range b {
		for len(a) > 0 && a[0].Last.Less(r.First) {
			a = a[1:]
		}
		if len(a) == 0 || r.First.Less(a[0].First) || a[0].Last.Less(r.Last) {
			return false
		}
	}
	return true
}

// coversPorts takes merged lists.
func coversPorts(a, b []PortRange) bool {
	for _, r := range b {
		for len(a) > 0 && (a[0].Protocol < r.Protocol || a[0].Protocol == r.Protocol && a[0].First != 0 && a[0].Last < r.First) {
			a = a[1:]
		}
		if len(a) == 0 || a[0].Protocol != r.Protocol || a[0].First != 0 && (r.First < a[0].First || a[0].Last < r.Last) {
			return false
		}
	}
	return true
}
