package render

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/policy/model"
)

// TestPatchesLeadToTheSnapshot makes random changes, updates that leave policies out,
// cleanups and restarts, and compares the snapshot with the patches after each.
func TestPatchesLeadToTheSnapshot(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			now := time.Unix(0, 0)
			f := newFixture(t, func(c *Config) {
				c.Start, c.DropLog, c.RecheckFor = Start(seed%2), int(seed%3), time.Hour
				c.Now = func() time.Time { return now }
			})
			c := &changer{fixture: f, Rand: rand.New(rand.NewPCG(seed, 1))}
			for range 60 {
				for range 1 + c.IntN(4) {
					c.change()
				}
				now = now.Add(time.Duration(c.IntN(10)) * time.Minute)
				c.publish()
				f.compare()
			}
			c.empty()
			now = now.Add(2 * time.Hour)
			f.finish()
			if p := f.r.Cleanup(); p != nil {
				f.rules.patch(t, p)
			}
			f.compare()
			c.checkEmpty()
		})
	}
}

// changer makes random changes.
type changer struct {
	*fixture
	*rand.Rand
}

var (
	somePods     = []string{"a/0", "a/1", "a/2", "b/0", "b/1", "b/2"}
	somePolicies = []string{"a/p", "a/q", "b/p", "b/q", "admin/x", "admin/y", "baseline/z"}
	someSets     = []string{"s0", "s1", "s2", "n0", "n1"}
)

func pick[T any](c *changer, of []T) T { return of[c.IntN(len(of))] }

// some returns a random part of a list.
func some[T any](c *changer, of []T) (out []T) {
	for _, x := range of {
		if c.IntN(3) == 0 {
			out = append(out, x)
		}
	}
	return out
}

func (c *changer) change() {
	for _, id := range someSets {
		if c.sets[model.SetID(id)] == nil {
			c.members(id)
		}
	}
	switch c.IntN(8) {
	case 0, 1:
		name := pick(c, somePods)
		if c.IntN(3) == 0 {
			delete(c.pods, c.pod(name, "", nil, nil).UID)
			return
		}
		addr := fmt.Sprintf("10.0.0.%d fd00::%d", 1+c.IntN(6), 1+c.IntN(6))
		c.pod(name, addr, some(c, somePolicies), some(c, somePolicies))
		c.unique(name)
	case 2, 3:
		name := pick(c, somePolicies)
		if c.IntN(3) == 0 {
			delete(c.policies, policyID(name))
			return
		}
		c.policy(name, c.someRules(name), c.someRules(name))
	case 4, 5:
		c.members(pick(c, someSets))
	case 6:
		for range c.IntN(5) {
			c.narrowed = append(c.narrowed, netip.MustParseAddr(fmt.Sprintf("10.0.0.%d", c.IntN(20))))
		}
	default:
		c.node = &model.Node{PodCIDRs: some(c, prefixes("10.0.0.0/24", "10.0.1.0/24", "fd00::/64"))}
	}
}

// unique removes the addresses of a pod from the others: a model gives an address to one
// pod only.
func (c *changer) unique(name string) {
	mine := c.pods[types.UID(name)].Addresses
	for uid, p := range c.pods {
		if uid == types.UID(name) {
			continue
		}
		changed := *p
		changed.Addresses = nil
		for _, a := range p.Addresses {
			if a != mine[0] && a != mine[1] {
				changed.Addresses = append(changed.Addresses, a)
			}
		}
		if len(changed.Addresses) != len(p.Addresses) {
			c.pods[uid] = &changed
		}
	}
}

func (c *changer) someRules(policy string) (out []model.Rule) {
	for range c.IntN(4) {
		r := model.Rule{Any: c.IntN(4) == 0, AllPorts: c.IntN(3) == 0}
		if policyID(policy).Tier != model.TierNetworkPolicy {
			r.Action = model.Action(c.IntN(3))
		}
		if !r.Any {
			for _, s := range some(c, someSets[:3]) {
				r.Pods = append(r.Pods, model.SetID(s))
			}
			r.Blocks = blocks(some(c, []string{"10.0.0.0/8", "10.1.0.0/16", "192.0.2.0/24", "0.0.0.0/0", "fd00::/8", "::/0"})...)
		}
		if !r.AllPorts {
			r.Ports = ports(some(c, []string{"tcp 80", "tcp 81", "tcp 90-99", "tcp", "udp 53", "udp 1-65535", "sctp 7", "sctp 9"})...)
			for _, s := range some(c, someSets[3:]) {
				r.NamedPorts = append(r.NamedPorts, model.SetID(s))
			}
		}
		out = append(out, r)
	}
	return out
}

// members replaces the members of a set: now and then by very many.
func (c *changer) members(id string) {
	var all []string
	if c.IntN(80) == 0 {
		for i := range manyMembers*2 + 100 {
			all = append(all, netip.AddrFrom4([4]byte{11, 0, byte(i >> 8), byte(i)}).String())
		}
	}
	for range c.IntN(10) {
		all = append(all, fmt.Sprintf("10.0.%d.%d", c.IntN(2), c.IntN(10)), fmt.Sprintf("fd00::%d", c.IntN(10)))
	}
	if id[0] == 'n' {
		for i := range all {
			all[i] += fmt.Sprintf(" %s %d", pick(c, []string{"tcp", "udp", "sctp"}), 80+c.IntN(2))
		}
		if len(all) == 0 {
			all = []string{"10.0.0.1 tcp 1"}
		}
	}
	c.set(id, all...)
}

// publish makes updates as a publisher does, or restarts.
func (c *changer) publish() {
	switch c.IntN(12) {
	case 0:
		c.finish()
		if p := c.r.Cleanup(); p != nil {
			c.rules.patch(c.t, p)
		}
	case 1, 2:
		c.finish()
	case 3:
		// A policy that is rejected is left out, and comes back.
		c.update()
		id := policyID(pick(c, somePolicies))
		c.step(model.Changes{Policies: []model.PolicyChange{{Old: &model.Policy{ID: id}}}})
		c.compare()
		if p := c.policies[id]; p != nil {
			c.step(model.Changes{Policies: []model.PolicyChange{{New: p}}})
		}
	case 4:
		c.r.Load(c.refresh())
		c.rules = load(c.t, c.r.Snapshot())
	case 5:
		c.restart()
	default:
		c.update()
	}
}

// restart makes a new renderer, which adopts what the old one left.
func (c *changer) restart() {
	left := c.r.Snapshot()
	r, err := New(c.r.cfg)
	must(c.t, err)
	r.Restore(left)
	c.r = r
	c.reported.pods, c.reported.policies, c.reported.sets = nil, nil, nil
	r.Load(c.refresh())
	c.rules = load(c.t, r.Snapshot())
}

func (c *changer) empty() {
	clear(c.pods)
	clear(c.policies)
	c.node = &model.Node{}
	// A Node that loses its podCIDRs keeps them.
	for _, t := range c.r.tables {
		t.cidrs, t.wantedCIDRs = nil, nil
	}
}

// checkEmpty checks that nothing is left but what always exists.
func (c *changer) checkEmpty() {
	c.t.Helper()
	for family, got := range c.rules {
		if len(got.chains) != 3 || len(got.counters) != 0 {
			c.t.Errorf("%s: %d chains and %d counters are left", family, len(got.chains), len(got.counters))
		}
		for name, s := range got.sets {
			if len(s.elements) != 0 {
				c.t.Errorf("%s: %s has %d elements left", family, name, len(s.elements))
			}
		}
	}
	for _, t := range c.r.tables {
		if len(t.byName)+len(t.sets)+len(t.policyChains)+len(t.owners)+len(t.hooks.declared) > 0 {
			c.t.Errorf("%s: the renderer keeps %d objects, %d sets, %d policies, %d addresses", t.family.table, len(t.byName), len(t.sets), len(t.policyChains), len(t.owners))
		}
	}
}
