package services

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
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
						publishtest.Equal(t, fmt.Sprintf("client %s by %s, beside the ClusterIP", from, to), only(t, c.ext, from, network, place(f, to), 2), pod)
					}
					got[pod]++
				}
				publishtest.Equal(t, fmt.Sprintf("twenty clients have %v: want all three pods", got), len(got), 3)
				// With the external policy Local a client's endpoint is a local one
				// there, and the same one inside if it came from outside first.
				for i, from := range clients {
					first := []string{"lb 4", "nodeport 4"}[i%2]
					pod := only(t, c.ext, from, network, place(f, first), 4)
					if pod == "pod1" {
						t.Errorf("client %s has %s by %s, which is not local", from, pod, first)
					}
					for _, to := range []string{"cluster 4", "nodeport 4", "external 4", "lb 4"} {
						publishtest.Equal(t, fmt.Sprintf("client %s by %s and by %s", from, first, to), only(t, c.ext, from, network, place(f, to), 2), pod)
					}
				}
				// A pod goes anywhere, and stays there too; so does the node.
				for _, ns := range []*nfttest.NS{c.pods[2], c.pods[3], c.node} {
					pod := only(t, ns, netip.Addr{}, network, place(f, "lb 4"), 4)
					publishtest.Equal(t, "the same place again", only(t, ns, netip.Addr{}, network, place(f, "lb 4"), 4), pod)
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
			publishtest.Equal(t, fmt.Sprintf("%s: %s now and before", what, from), only(t, c.ext, from, "tcp", to, 1), had[from])
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
		publishtest.Equal(t, fmt.Sprintf("%s on this node", from), only(t, c.ext, from, "tcp", to, 2), "pod2")
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
	publishtest.Equal(t, "another Service's chains", theirs(), before)
	for _, from := range clients {
		publishtest.Equal(t, fmt.Sprintf("%s of another Service, now and before", from), only(t, c.ext, from, "tcp", other, 1), hadOther[from])
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

// TestAffinityOfAnEarlierVersion takes over the rules of a version that had a chain for each
// endpoint: clients keep their endpoints, and entries of an endpoint that leaves go. Its clients pick another,
// which they keep when it is back, and all keep theirs over a restart of the aggregator.
//
// Behaviour: 80, 81.
func TestAffinityOfAnEarlierVersion(t *testing.T) {
	text, err := os.ReadFile("testdata/affinity-earlier.json")
	must(t, err)
	earlier := &weftv1.Fragment{}
	must(t, protojson.Unmarshal(text, earlier))
	c := newCluster(t)
	s := newStack(t, c.node)
	_, stop := s.aggregator(t)
	conn, err := client.Dial(t.Context(), client.Config{Socket: s.socket, Publisher: Publisher})
	must(t, err)
	if _, err := conn.Apply(t.Context(), earlier); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	type flow struct {
		family  model.Family
		network string
		from    netip.Addr
	}
	had, lost := make(map[flow]string), 0
	for f := range model.NumFamilies {
		for _, from := range c.clients(t, f, 12) {
			for _, network := range []string{"tcp", "udp"} {
				pod := only(t, c.ext, from, network, place(f, "nodeport 1"), 2)
				had[flow{f, network, from}] = pod
				if pod == "pod3" {
					lost++
				}
			}
		}
	}
	if lost == 0 || lost == len(had) {
		t.Fatalf("pod3 has %d of %d clients", lost, len(had))
	}
	if list := c.node.ListRuleset(t); !strings.Contains(list, "__10.244.1.2/8080") {
		t.Fatalf("the earlier rules have no chain of an endpoint:\n%s", list)
	}
	keep := func(when string, left string) {
		t.Helper()
		for of, pod := range had {
			got := only(t, c.ext, of.from, of.network, place(of.family, "cluster 1"), 2)
			if got == left || pod != left && got != pod {
				t.Errorf("%s: client %v has %s, and %s before", when, of, got, pod)
			}
			had[of] = got
		}
	}
	// The aggregator of this version begins with the earlier rules.
	stop()
	_, stop = s.aggregator(t)
	sticky := func(pods ...string) *model.Service { return withAffinity(newService(1, pods...), time.Hour) }
	p := newPlane(t, s)
	p.r.Restore(earlier)
	p.publish(t, model.Changes{Node: thisNode(), ServiceCIDRs: serviceRanges(), Services: []model.Change{{Name: sticky().Name, New: sticky("1", "2", "3")}}})
	keep("this version is in force", "")
	p.sweep(t)
	if list := c.node.ListRuleset(t); strings.Contains(list, "__10.244") || strings.Contains(list, "sticky-endpoints") {
		t.Errorf("chains or maps of the earlier version stay:\n%s", list)
	}
	keep("it swept", "")
	p.put(t, sticky("1", "2"))
	for f := range model.NumFamilies {
		await(t, "the entries of pod3 to go", func() bool {
			family := []string{"ip", "ip6"}[f]
			return !strings.Contains(c.node.Run(t, "nft", "list", "map", family, "weft", affinityMap(t, c, "tcp")), podAddr(f, 3).String())
		})
	}
	keep("pod3 left", "pod3")
	p.put(t, sticky("1", "2", "3"))
	keep("pod3 is back", "")
	stop()
	s.aggregator(t)
	// Answered once the session is back.
	p.put(t, newService(3, "3"))
	keep("the aggregator restarted", "")
}

// TestAffinityOfLocalProcesses: a flow to an endpoint that is the node itself does not leave
// it, nor does one from the node, and is remembered like others.
//
// Behaviour: 77, 78.
func TestAffinityOfLocalProcesses(t *testing.T) {
	c := newCluster(t)
	for f := range model.NumFamilies {
		serveAt(t, c.node, "node", nodeAddr[f])
	}
	svc := withAffinity(newService(1, "2*"), time.Hour)
	for i := range svc.Ports {
		for f := range model.NumFamilies {
			b := &svc.Ports[i].Backends[f]
			for e := range b.Cluster.All() {
				b.Cluster = model.MakeEndpoints(e, model.Endpoint{Addr: netip.AddrPortFrom(nodeAddr[f], 8080), Local: true})
			}
		}
	}
	c.start(t, []*model.Service{svc})
	for f := range model.NumFamilies {
		got := make(map[string]int)
		for _, from := range c.clients(t, f, 12) {
			for _, network := range []string{"tcp", "udp"} {
				pod := only(t, c.ext, from, network, place(f, "cluster 1"), 3)
				publishtest.Equal(t, fmt.Sprintf("%s %s by the NodePort, beside the ClusterIP", from, network), only(t, c.ext, from, network, place(f, "nodeport 1"), 3), pod)
				got[pod]++
			}
		}
		publishtest.Equal(t, fmt.Sprintf("%s: the endpoints of the clients are %v: want both", f, got), len(got), 2)
		for _, network := range []string{"tcp", "udp"} {
			only(t, c.node, netip.Addr{}, network, place(f, "cluster 1"), 6)
		}
	}
}

// TestAffinityOfOtherPrograms: where the rules of another program sent a flow is not
// remembered, unless it is an endpoint of the Service.
func TestAffinityOfOtherPrograms(t *testing.T) {
	c := newCluster(t)
	c.start(t, []*model.Service{withAffinity(newService(1, "2", "3"), time.Hour)})
	const theirs = "table ip other { chain prerouting { type nat hook prerouting priority dstnat - 5; ip daddr 10.96.0.1 meta l4proto { tcp, udp } dnat to %s; }; }"
	all := c.clients(t, model.IPv4, 16)
	for i, tt := range []struct{ to, want string }{{"10.244.1.2:8080", ""}, {"10.244.3.2:8080", "pod3"}} {
		c.node.Nft(t, fmt.Sprintf(theirs, tt.to))
		clients := all[8*i : 8*i+8]
		for _, from := range clients {
			if pod := only(t, c.ext, from, "tcp", place(model.IPv4, "cluster 1"), 2); pod != "pod"+tt.to[7:8] {
				t.Fatalf("%s: the other program's rules send to %s", from, pod)
			}
		}
		c.node.Nft(t, "delete table ip other")
		for _, from := range clients {
			pod := only(t, c.ext, from, "tcp", place(model.IPv4, "cluster 1"), 3)
			if pod == "pod1" || tt.want != "" && pod != tt.want {
				t.Errorf("%s has %s after the other program sent it to %s", from, pod, tt.to)
			}
		}
	}
}
