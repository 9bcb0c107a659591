package render

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// newSession runs an aggregator in a namespace, and connects to it.
func newSession(t testing.TB, ns *nfttest.NS, r *Renderer) *client.Session {
	t.Helper()
	c, err := client.Dial(context.Background(), client.Config{Socket: aggregatortest.StartIn(t, ns).Socket, Publisher: "policy"})
	must(t, err)
	s := c.Session(client.SessionConfig{Snapshot: func(string) *weftv1.Fragment { return r.Snapshot() }})
	t.Cleanup(func() { _, _ = s.Close(), c.Close() })
	return s
}

// committed waits until an update is in force.
func committed(t testing.TB, p *client.Pending) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	if _, err := p.Wait(ctx); err != nil {
		t.Fatalf("publish: %v", err)
	}
}

// TestAggregatorAcceptsPatches sends the patches of random changes to an aggregator.
func TestAggregatorAcceptsPatches(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	f := newFixture(t, func(c *Config) { c.Start, c.DropLog = StartDeny, 1 })
	s := newSession(t, ns, f.r)
	everyConstruct(f)
	f.finish()
	committed(t, s.StartPut(f.r.Snapshot()))
	c := &changer{fixture: f, Rand: rand.New(rand.NewPCG(1, 2))}
	send := func(p *weftv1.Patch) {
		if p != nil {
			committed(t, s.StartPatch(p))
		}
	}
	for n := range 100 {
		for range 1 + c.IntN(4) {
			c.change()
		}
		send(f.r.Update(f.refresh()).Patch)
		if n%7 == 0 {
			for f.r.Pending() {
				send(f.r.Update(model.Changes{}).Patch)
			}
			send(f.r.Cleanup())
		}
	}
	c.empty()
	send(f.r.Update(f.refresh()).Patch)
	send(f.r.Cleanup())
	if list := ns.ListRuleset(t); strings.Contains(list, "hook") {
		t.Errorf("chains on hooks are left:\n%s", list)
	}
}

// TestCountersSurvive counts packets, changes the policy and the members of its set, and
// expects that the counters go on.
//
// Policy behaviour: 53.
func TestCountersSurvive(t *testing.T) {
	l := newLab(t)
	s := newSession(t, l.node, l.r)
	put := func() { committed(t, s.StartPut(l.r.Snapshot())) }
	send := func() {
		t.Helper()
		if u := l.r.Update(l.refresh()); u.Patch != nil {
			committed(t, s.StartPatch(u.Patch))
		}
		if p := l.r.Cleanup(); p != nil {
			committed(t, s.StartPatch(p))
		}
	}
	counted := func(comment string) bool {
		_, rest, _ := strings.Cut(l.node.ListRuleset(t), `comment "`+comment+`"`)
		packets, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
		return strings.HasPrefix(packets, "packets ") && !strings.HasPrefix(packets, "packets 0 ")
	}
	l.policy("lab/p", []model.Rule{{Pods: []model.SetID{l.podsSet("s", 1)}, AllPorts: true}}, nil)
	l.labPod(2, "lab/p", "")
	l.r.Load(l.refresh())
	put()
	l.expect([]string{"pod1 pod2"}, []string{"pod3 pod2"})
	check := func(after string) {
		t.Helper()
		for _, c := range []string{"lab/p ingress[0]", "lab/p ingress"} {
			if !counted(c) {
				t.Errorf("%s: the counter of %q has nothing", after, c)
			}
		}
	}
	check("at first")
	l.podsSet("s", 1, 3)
	send()
	check("after a change of members")
	l.policy("lab/p", []model.Rule{{Pods: []model.SetID{"s"}, AllPorts: true}, {Any: true, Ports: ports("tcp 1")}}, nil)
	send()
	check("after another rule")
	l.labPod(3, "lab/p", "")
	l.policy("lab/q", nil, everyone)
	l.labPod(1, "", "lab/q")
	send()
	check("after other pods and policies")
	l.narrowed = []netip.Addr{labAddr(0, 1)}
	send()
	check("after a narrowing")
}
