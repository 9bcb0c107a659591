package render

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/policy/model"
)

// cluster is a model that a test writes: refresh returns what differs from the last time.
type cluster struct {
	pods     map[types.UID]*model.Pod
	policies map[model.PolicyID]*model.Policy
	sets     map[model.SetID]*testSet
	narrowed []netip.Addr
	node     *model.Node

	reported struct {
		pods     map[types.UID]*model.Pod
		policies map[model.PolicyID]*model.Policy
		sets     map[model.SetID]*testSet
	}
}

type testSet struct {
	set     model.Set
	members map[model.Member]struct{}
}

func newCluster() *cluster {
	return &cluster{pods: make(map[types.UID]*model.Pod), policies: make(map[model.PolicyID]*model.Policy), sets: make(map[model.SetID]*testSet)}
}

// refresh returns the changes, in the order of a Model.
func (c *cluster) refresh() (out model.Changes) {
	for _, uid := range keysOf(c.pods, c.reported.pods) {
		if was, is := c.reported.pods[uid], c.pods[uid]; was != is {
			out.Pods = append(out.Pods, model.PodChange{Old: was, New: is})
		}
	}
	ids := slices.Collect(maps.Keys(c.policies))
	for id := range c.reported.policies {
		if c.policies[id] == nil {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, compareIDs)
	for _, id := range ids {
		if was, is := c.reported.policies[id], c.policies[id]; was != is {
			out.Policies = append(out.Policies, model.PolicyChange{Old: was, New: is})
		}
	}
	used := c.used()
	for _, id := range keysOf(used, c.reported.sets) {
		was, is := c.reported.sets[id], used[id]
		if s := differ(was, is); s != nil {
			out.Sets = append(out.Sets, *s)
		}
	}
	c.reported.pods, c.reported.policies = maps.Clone(c.pods), maps.Clone(c.policies)
	c.reported.sets = make(map[model.SetID]*testSet)
	for id, s := range used {
		c.reported.sets[id] = &testSet{s.set, maps.Clone(s.members)}
	}
	slices.SortFunc(c.narrowed, netip.Addr.Compare)
	out.Narrowed, out.Node = slices.Compact(c.narrowed), c.node
	c.narrowed, c.node = nil, nil
	return out
}

// used returns the sets that rules name.
func (c *cluster) used() map[model.SetID]*testSet {
	out := make(map[model.SetID]*testSet)
	for _, p := range c.policies {
		for _, rules := range p.Rules {
			for _, r := range rules {
				for _, id := range slices.Concat(r.Pods, r.NamedPorts) {
					out[id] = c.sets[id]
				}
			}
		}
	}
	return out
}

func differ(was, is *testSet) *model.SetChange {
	switch {
	case was == nil:
		return &model.SetChange{New: &is.set, Added: minus(is.members, nil)}
	case is == nil:
		return &model.SetChange{Old: &was.set}
	}
	c := &model.SetChange{Old: &was.set, New: &is.set, Added: minus(is.members, was.members), Removed: minus(was.members, is.members)}
	if len(c.Added)+len(c.Removed) == 0 {
		return nil
	}
	return c
}

// minus returns those of a that are not in b, sorted.
func minus(a, b map[model.Member]struct{}) (out []model.Member) {
	for m := range a {
		if _, ok := b[m]; !ok {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, model.CompareMembers)
	return out
}

func keysOf[K cmp.Ordered, V any](a, b map[K]V) []K {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(all)
	return slices.Compact(all)
}

func compareIDs(a, b model.PolicyID) int {
	return cmp.Or(cmp.Compare(a.Tier, b.Tier), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// pod sets a pod of this node, such as "shop/api", with policies such as "shop/db" and
// "admin/x".
func (c *cluster) pod(name string, addresses string, ingress, egress []string) *model.Pod {
	ns, n, _ := strings.Cut(name, "/")
	p := &model.Pod{UID: types.UID(name), Name: types.NamespacedName{Namespace: ns, Name: n}}
	for _, a := range strings.Fields(addresses) {
		p.Addresses = append(p.Addresses, netip.MustParseAddr(a))
	}
	for d, names := range [][]string{ingress, egress} {
		for _, n := range names {
			p.Policies[d] = append(p.Policies[d], policyID(n))
		}
		slices.SortFunc(p.Policies[d], compareIDs)
	}
	c.pods[p.UID] = p
	return p
}

func policyID(name string) model.PolicyID {
	switch ns, n, _ := strings.Cut(name, "/"); ns {
	case "admin":
		return model.PolicyID{Tier: model.TierAdmin, Name: n}
	case "baseline":
		return model.PolicyID{Tier: model.TierBaseline, Name: n}
	default:
		return model.PolicyID{Tier: model.TierNetworkPolicy, Namespace: ns, Name: n}
	}
}

// policy sets a policy.
func (c *cluster) policy(name string, ingress, egress []model.Rule) {
	p := &model.Policy{ID: policyID(name), Rules: [2][]model.Rule{slices.Clone(ingress), slices.Clone(egress)}}
	for d, rules := range p.Rules {
		for i := range rules {
			if rules[i].Name == "" {
				rules[i].Name = fmt.Sprintf("%s[%d]", model.Direction(d), i)
			}
		}
	}
	c.policies[p.ID] = p
}

// set sets the members of a set: addresses, or "10.0.0.1 tcp 80" for ports.
func (c *cluster) set(id string, members ...string) model.SetID {
	s := &testSet{set: model.Set{ID: model.SetID(id), Comment: id}, members: make(map[model.Member]struct{})}
	for _, text := range members {
		var m model.Member
		parts := strings.Fields(text)
		m.Addr = netip.MustParseAddr(parts[0])
		if len(parts) > 1 {
			s.set.Ports = true
			m.Protocol = map[string]model.Protocol{"tcp": model.TCP, "udp": model.UDP, "sctp": model.SCTP}[parts[1]]
			_, _ = fmt.Sscan(parts[2], &m.Port)
		}
		s.members[m] = struct{}{}
	}
	c.sets[s.set.ID] = s
	return s.set.ID
}

// ports makes ranges such as "tcp 80", "udp 53-60" and "sctp".
func ports(texts ...string) (out []model.PortRange) {
	for _, text := range texts {
		parts := strings.Fields(text)
		p := model.PortRange{Protocol: map[string]model.Protocol{"tcp": model.TCP, "udp": model.UDP, "sctp": model.SCTP}[parts[0]]}
		if len(parts) > 1 {
			first, last, ok := strings.Cut(parts[1], "-")
			if !ok {
				last = first
			}
			_, _ = fmt.Sscan(first, &p.First)
			_, _ = fmt.Sscan(last, &p.Last)
		}
		out = append(out, p)
	}
	return out
}

// blocks makes ranges of prefixes.
func blocks(texts ...string) (out []model.Range) {
	for _, text := range texts {
		p := netip.MustParsePrefix(text)
		out = append(out, model.RangeOf(p.Masked()))
	}
	return model.MergeRanges(out)
}

// everyone is a rule that accepts everything.
var everyone = []model.Rule{{Any: true, AllPorts: true}}

// fixture is a renderer with the ruleset that its updates lead to.
type fixture struct {
	t testing.TB
	*cluster
	r     *Renderer
	rules ruleset
}

func newFixture(t testing.TB, edit ...func(*Config)) *fixture {
	t.Helper()
	cfg := Config{Families: [2]bool{true, true}}
	for _, e := range edit {
		e(&cfg)
	}
	r, err := New(cfg)
	must(t, err)
	return &fixture{t: t, cluster: newCluster(), r: r, rules: load(t, r.Snapshot())}
}

// update renders the changes once.
func (f *fixture) update() {
	f.t.Helper()
	f.step(f.refresh())
}

func (f *fixture) step(c model.Changes) {
	f.t.Helper()
	if u := f.r.Update(c); u.Patch != nil {
		f.rules.patch(f.t, u.Patch)
	}
}

// finish renders the changes and all that is pending.
func (f *fixture) finish() {
	f.t.Helper()
	f.update()
	for n := 0; f.r.Pending(); n++ {
		if n > 1000 {
			f.t.Fatal("updates never end")
		}
		f.step(model.Changes{})
	}
}

// compare checks that the snapshot is what the patches led to.
func (f *fixture) compare() {
	f.t.Helper()
	if want, got := load(f.t, f.r.Snapshot()).String(), f.rules.String(); want != got {
		f.t.Fatalf("snapshot:\n%s\npatches:\n%s", want, got)
	}
}

// must ends the test with an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func prefixes(texts ...string) (out []netip.Prefix) {
	for _, text := range texts {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

func addresses(texts ...string) (out []netip.Addr) {
	for _, text := range texts {
		out = append(out, netip.MustParseAddr(text))
	}
	return out
}
