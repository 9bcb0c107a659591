package services

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// withAffinity gives a Service session affinity.
func withAffinity(s *model.Service, timeout time.Duration) *model.Service {
	s.Affinity = timeout
	return s
}

// only asks n times and returns the one pod that answers; the test fails if there are
// two.
func only(t *testing.T, ns *nfttest.NS, from netip.Addr, network, to string, n int) string {
	t.Helper()
	first := ""
	for range n {
		pod, _, err := askFrom(ns, from, network, to, 2*time.Second)
		if err != nil {
			t.Fatalf("ask %s: %v", to, err)
		}
		if first != "" && pod != first {
			t.Fatalf("%s: %s answers, and %s before", to, pod, first)
		}
		first = pod
	}
	return first
}

// clients gives the namespace outside more addresses.
func (c *cluster) clients(t *testing.T, f model.Family, n int) (out []netip.Addr) {
	t.Helper()
	a := []netip.Addr{netip.MustParseAddr("192.0.2.100"), netip.MustParseAddr("2001:db8::100")}[f]
	for range n {
		c.ext.Run(t, "ip", "addr", "add", a.String()+[]string{"/24", "/64"}[f], "dev", "eth0", "nodad")
		out = append(out, a)
		a = a.Next()
	}
	return out
}

// TestAffinity: a client keeps its endpoint, whatever its port and by whatever
// address of the port it comes; another client, port or Service has its own.
//
// Behaviour: 77, 78, 79.
func TestAffinity(t *testing.T) {
	c := newCluster(t)
	all := newService(1, "1", "2", "3")
	c.start(t, []*model.Service{withAffinity(all, time.Hour), withAffinity(withPolicies(newService(4, "1", "2*", "3*"), false, true), time.Hour)})
	for f := range model.NumFamilies {
		clients := c.clients(t, f, 20)
		for _, network := range []string{"tcp", "udp"} {
			t.Run(fmt.Sprintf("%s %s", f, network), func(t *testing.T) {
				got := make(map[string]int)
				for _, from := range clients {
					pod := only(t, c.ext, from, network, place(f, "cluster 1"), 3)
					for _, to := range []string{"external 1", "lb 1", "nodeport 1", "cluster 1"} {
						if other := only(t, c.ext, from, network, place(f, to), 2); other != pod {
							t.Errorf("client %s has %s by its ClusterIP and %s by %s", from, pod, other, to)
						}
					}
					got[pod]++
				}
				if len(got) != 3 {
					t.Errorf("twenty clients have %v: want all three pods", got)
				}
				// With the external policy Local a client's endpoint is a local one
				// there, and the same one inside if it came from outside first.
				for i, from := range clients {
					first := []string{"lb 4", "nodeport 4"}[i%2]
					pod := only(t, c.ext, from, network, place(f, first), 4)
					if pod == "pod1" {
						t.Errorf("client %s has %s by %s, which is not local", from, pod, first)
					}
					for _, to := range []string{"cluster 4", "nodeport 4", "external 4", "lb 4"} {
						if other := only(t, c.ext, from, network, place(f, to), 2); other != pod {
							t.Errorf("client %s has %s by %s and %s by %s", from, pod, first, other, to)
						}
					}
				}
				// A pod goes anywhere, and stays there too; so does the node.
				for _, ns := range []*nfttest.NS{c.pods[2], c.pods[3], c.node} {
					pod := only(t, ns, netip.Addr{}, network, place(f, "lb 4"), 4)
					if other := only(t, ns, netip.Addr{}, network, place(f, "lb 4"), 4); other != pod {
						t.Errorf("%s, then %s", pod, other)
					}
				}
			})
		}
	}
	list := c.node.ListRuleset(t)
	for _, rule := range []string{
		"update @affinity-", "{ ip6 saddr timeout 1h : ip6 daddr . th dport }",
		"ct original ip daddr . meta l4proto . ct original proto-dst vmap @sticky-services",
	} {
		if !strings.Contains(list, rule) {
			t.Errorf("the rule %q is not listed:\n%s", rule, list)
		}
	}
}

// TestAffinityEnds: an entry's time begins anew with each flow, and ends.
//
// Behaviour: 77.
func TestAffinityEnds(t *testing.T) {
	c := newCluster(t)
	c.start(t, []*model.Service{withAffinity(newService(1, "1", "2", "3"), time.Second)})
	to := place(model.IPv4, "cluster 1")
	first := only(t, c.ext, netip.Addr{}, "udp", to, 1)
	for began := time.Now(); time.Since(began) < 2*time.Second; {
		if pod := only(t, c.ext, netip.Addr{}, "udp", to, 1); pod != first {
			t.Fatalf("%s after %v of flows, and %s before", pod, time.Since(began), first)
		}
	}
	name := affinityMap(t, c, "udp")
	await(t, "the entry to end, and another pod to be picked", func() bool {
		if strings.Contains(c.node.Run(t, "nft", "list", "map", "ip", "weft", name), extAddr[0].String()) {
			return false
		}
		return only(t, c.ext, netip.Addr{}, "udp", to, 1) != first
	})
}

// TestAffinityChanges: another timeout, endpoint, policy or no affinity at all affects
// only the clients concerned.
//
// Behaviour: 82, 83, 84.
func TestAffinityChanges(t *testing.T) {
	c := newCluster(t)
	bystander := withAffinity(newService(4, "1", "2", "3"), time.Hour)
	_, p := c.start(t, []*model.Service{withAffinity(newService(1, "2*", "3"), time.Hour), bystander})
	clients := c.clients(t, model.IPv4, 12)
	to, other := place(model.IPv4, "lb 1"), place(model.IPv4, "lb 4")
	had, hadOther := make(map[netip.Addr]string), make(map[netip.Addr]string)
	for _, from := range clients {
		had[from], hadOther[from] = only(t, c.ext, from, "tcp", to, 1), only(t, c.ext, from, "tcp", other, 1)
	}
	same := func(what string) {
		t.Helper()
		for _, from := range clients {
			if pod := only(t, c.ext, from, "tcp", to, 1); pod != had[from] {
				t.Errorf("%s: %s has %s now, and %s before", what, from, pod, had[from])
			}
		}
	}
	// The objects of s4 stay as they are in the kernel, handles included.
	theirs := func() string {
		var out []string
		for line := range strings.Lines(c.node.Run(t, "nft", "-a", "list", "table", "ip", "weft")) {
			if strings.Contains(line, "default/s4/") && strings.Contains(line, "# handle ") {
				out = append(out, line)
			}
		}
		return strings.Join(out, "")
	}
	before := theirs()

	p.put(t, withAffinity(newService(1, "2*", "3"), 2*time.Hour))
	same("another timeout")
	list := c.node.ListRuleset(t)
	if !strings.Contains(list, "ip saddr timeout 2h : ip daddr . th dport") || !strings.Contains(list, " expires 1h59m") {
		t.Errorf("the new timeout is not in force:\n%s", list)
	}
	p.put(t, withAffinity(newService(1, "1", "2*", "3"), 2*time.Hour))
	same("one more endpoint")

	// Who had a remote endpoint gets a local one, who had a local one keeps it.
	p.put(t, withAffinity(withPolicies(newService(1, "2*", "3"), false, true), 2*time.Hour))
	for _, from := range clients {
		if pod := only(t, c.ext, from, "tcp", to, 2); pod != "pod2" {
			t.Errorf("%s has %s, which is not on this node", from, pod)
		}
	}
	p.put(t, withAffinity(newService(1, "2*", "3"), 2*time.Hour))
	same("the policy is Cluster again")

	// Off: new flows go anywhere, and nothing is left of it.
	p.put(t, newService(1, "2*", "3"))
	c.check(t, []flow{{"ext", "lb 1", "pod2 pod3"}, {"ext", "nodeport 1", "pod2 pod3"}, {"pod1", "cluster 1", "pod2 pod3"}})
	p.sweep(t)
	if list := c.node.ListRuleset(t); strings.Contains(list, "default/s1/") {
		t.Errorf("chains and maps of no use stay:\n%s", list)
	}
	// On again, before and after the sweep.
	p.put(t, withAffinity(newService(1, "2*", "3"), time.Hour))
	for _, from := range clients {
		only(t, c.ext, from, "tcp", to, 4)
	}
	p.put(t, newService(1, "2*", "3"))
	p.put(t, withAffinity(newService(1, "2*", "3"), time.Hour))
	p.sweep(t)
	for _, from := range clients {
		only(t, c.ext, from, "tcp", to, 4)
	}
	if after := theirs(); after != before {
		t.Errorf("another Service's chains changed from\n%s\nto\n%s", before, after)
	}
	for _, from := range clients {
		if pod := only(t, c.ext, from, "tcp", other, 1); pod != hadOther[from] {
			t.Errorf("%s has %s of another Service now, and %s before", from, pod, hadOther[from])
		}
	}
	p.drop(t, "s1", "s4")
	p.sweep(t)
	if list := c.node.ListRuleset(t); strings.Contains(list, "default/") {
		t.Errorf("deleted Services leave something:\n%s", list)
	}
}

// affinityMap finds the map of a protocol's port of s1.
func affinityMap(t *testing.T, c *cluster, proto string) string {
	t.Helper()
	for line := range strings.Lines(c.node.ListRuleset(t)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "map" && strings.HasSuffix(words[1], "-default/s1/"+proto+"/"+proto) && strings.HasPrefix(words[1], "affinity-") {
			return words[1]
		}
	}
	t.Fatal("there is no affinity map of s1")
	return ""
}
