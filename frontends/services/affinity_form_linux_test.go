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
)

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
				if other := only(t, c.ext, from, network, place(f, "nodeport 1"), 3); other != pod {
					t.Errorf("%s %s has %s by its ClusterIP and %s by its NodePort", from, network, pod, other)
				}
				got[pod]++
			}
		}
		if len(got) != 2 {
			t.Errorf("%s: the endpoints of the clients are %v: want both", f, got)
		}
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
