package services

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// keep opens a flow that stays and returns a function that asks who answers it.
func keep(t *testing.T, ns *nfttest.NS, network, to string) func() (string, error) {
	t.Helper()
	var conn net.Conn
	must(t, ns.Do(func() (err error) { conn, err = net.DialTimeout(network, to, 2*time.Second); return err }))
	t.Cleanup(func() { conn.Close() })
	b := make([]byte, 128)
	if network == "tcp" {
		// What comes without a question.
		if _, err := conn.Read(b); err != nil {
			t.Fatal(err)
		}
	}
	return func() (string, error) {
		_ = conn.SetDeadline(time.Now().Add(time.Second))
		if _, err := conn.Write([]byte("?")); err != nil {
			return "", err
		}
		n, err := conn.Read(b)
		name, _, _ := strings.Cut(string(b[:n]), " ")
		return name, err
	}
}

// TestServiceChanges: a flow that is there goes on while its endpoint lives, new flows
// follow the change at once.
//
// Behaviour: 12, 13, 48.
func TestServiceChanges(t *testing.T) {
	c := newCluster(t)
	_, p := c.start(t, []*model.Service{newService(1, "2"), newService(3, "3")})
	for f := range model.NumFamilies {
		t.Run(f.String(), func(t *testing.T) {
			held := map[string]func() (string, error){}
			for _, to := range []string{"cluster 1", "lb 1", "nodeport 1"} {
				held[to] = keep(t, c.ext, "tcp", place(f, to))
			}
			goesOn := func(what string) {
				t.Helper()
				for to, ask := range held {
					if pod, err := ask(); pod != "pod2" {
						t.Errorf("%s: %q answers the flow to %s, %v", what, pod, to, err)
					}
				}
			}
			goesOn("before")
			// Ranges that leave the client out are for new flows.
			p.put(t, allow(newService(1, "2"), podAddr(0, 1), podAddr(1, 1)))
			goesOn("source ranges")
			c.send(t, flow{"ext", "lb 1", "dropped"}, f, "tcp")
			c.send(t, flow{"pod1", "lb 1", "pod2"}, f, "tcp")
			// Another ClusterIP, in one commit.
			moved := newService(1, "2")
			for i := range moved.Ports {
				for g := range model.NumFamilies {
					moved.ClusterIPs[g] = clusterIP(g, 50)
					moved.Ports[i].ClusterIPs[g] = clusterIP(g, 50)
				}
			}
			p.put(t, moved)
			goesOn("another ClusterIP")
			c.send(t, flow{"pod1", "cluster 1", "dropped"}, f, "tcp")
			c.send(t, flow{"pod1", "cluster 50", "pod2"}, f, "tcp")
			// Gone.
			p.drop(t, "s1")
			goesOn("deletion")
			c.send(t, flow{"pod1", "cluster 50", "dropped"}, f, "tcp")
			c.send(t, flow{"pod1", "lb 1", "world"}, f, "tcp")
			if pod, _, err := ask(c.ext, "tcp", place(f, "nodeport 1")); err == nil {
				t.Errorf("the NodePort of a deleted Service is answered by %s", pod)
			}
			c.send(t, flow{"pod1", "cluster 3", "pod3"}, f, "tcp")
			p.put(t, newService(1, "2"))
		})
	}
}

// TestNoGap: while Services come and go and a Service's address moves back and forth
// with its endpoint, no flow to another Service is refused, and of the two addresses
// one always answers.
//
// Behaviour: 13, 170.
func TestNoGap(t *testing.T) {
	c := newCluster(t)
	_, p := c.start(t, []*model.Service{newService(1, "2", "3"), newService(50, "2")})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			for _, f := range []model.Family{model.IPv4, model.IPv6} {
				if pod, _, err := ask(c.pods[1], "tcp", place(f, "cluster 1")); err != nil {
					t.Errorf("a Service that does not change: %q, %v", pod, err)
					return
				}
			}
		}
	})
	for i := range 150 {
		moved := newService(50, "2")
		for j := range moved.Ports {
			for g := range model.NumFamilies {
				moved.ClusterIPs[g] = clusterIP(g, 50+i%2)
				moved.Ports[j].ClusterIPs[g] = clusterIP(g, 50+i%2)
			}
		}
		u := p.put(t, moved, newService(60+i%5, []string{"3", "2"}[i%2]))
		if u.Snapshot {
			t.Fatal("a change of a Service is a snapshot")
		}
		p.drop(t, fmt.Sprintf("s%d", 60+i%5))
		if i%20 == 0 {
			p.sweep(t)
		}
	}
	cancel()
	wg.Wait()
}

// TestPolicyKeepsFlows: other policies, and an endpoint that drains, do not
// end a UDP flow whose endpoint still serves.
//
// Behaviour: 108.
func TestPolicyKeepsFlows(t *testing.T) {
	c := newCluster(t)
	_, p := c.start(t, []*model.Service{newService(1, "3")})
	held := make(map[string]func() (string, error))
	for f := range model.NumFamilies {
		for _, to := range []string{"cluster 1", "lb 1", "external 1", "nodeport 1"} {
			held[place(f, to)] = keep(t, c.ext, "udp", place(f, to))
		}
	}
	draining := newService(1, "2*")
	for i := range draining.Ports {
		for f := range model.NumFamilies {
			draining.Ports[i].Backends[f].Draining = backendsOf(f, "3")
		}
	}
	for _, tt := range []struct {
		name string
		to   *model.Service
	}{
		{"as it was", newService(1, "3")},
		{"one more", newService(1, "2*", "3")},
		{"both Local", withPolicies(newService(1, "2*", "3"), true, true)},
		{"external Local", withPolicies(newService(1, "2*", "3"), false, true)},
		{"internal Local", withPolicies(newService(1, "2*", "3"), true, false)},
		{"none here", withPolicies(newService(1, "3"), true, true)},
		{"affinity", withAffinity(newService(1, "2*", "3"), time.Hour)},
		{"affinity and Local", withAffinity(withPolicies(newService(1, "2*", "3"), true, true), time.Hour)},
		{"draining", draining},
		{"draining and affinity", withAffinity(edit(newService(1, "2*"), func(s *model.Service) { s.Ports = draining.Ports }), time.Hour)},
	} {
		p.put(t, tt.to)
		// The flush, if there is one, comes after the acknowledgement: ask for a while.
		for range 5 {
			for to, ask := range held {
				if pod, err := ask(); pod != "pod3" {
					t.Errorf("%s: %q answers the flow to %s, %v", tt.name, pod, to, err)
				}
			}
		}
	}
	// The endpoint is gone: now they end.
	p.put(t, newService(1, "2*"))
	for to, ask := range held {
		await(t, "the flow to "+to+" to move", func() bool { pod, _ := ask(); return pod == "pod2" })
	}
}

// TestFlowsOfAnotherProxy: when weft starts for the first time, UDP flows that another proxy led to an endpoint that
// the Service does not have now move to one that it has. Those to an endpoint that it has stay.
//
// Behaviour: 106.
func TestFlowsOfAnotherProxy(t *testing.T) {
	c := newCluster(t)
	held := make(map[string]func() (string, error))
	for f, family := range map[model.Family]string{model.IPv4: "ip", model.IPv6: "ip6"} {
		for i, pod := range []int{2, 3} {
			name := fmt.Sprintf("cluster %d", i+1)
			to := netip.MustParseAddrPort(place(f, name))
			c.node.Nft(t, fmt.Sprintf(`table %s other { chain services { type nat hook prerouting priority dstnat; %s daddr %s udp dport %d dnat to %s; }; }`,
				family, family, to.Addr(), to.Port(), netip.AddrPortFrom(podAddr(f, pod), 8080)))
			held[to.String()] = keep(t, c.ext, "udp", to.String())
			if got, err := held[to.String()](); got != fmt.Sprintf("pod%d", pod) {
				t.Fatalf("before weft %q answers the flow to %s, %v", got, to, err)
			}
		}
		c.node.Nft(t, "delete table "+family+" other")
	}
	c.start(t, []*model.Service{newService(1, "3"), newService(2, "3")})
	for to, ask := range held {
		await(t, "the flow to "+to+" to move", func() bool { pod, _ := ask(); return pod == "pod3" })
	}
}

// TestRandomPick: each of the endpoints gets its share of new flows, and a flow stays
// where it is.
//
// Behaviour: 4.
func TestRandomPick(t *testing.T) {
	c := newCluster(t)
	c.start(t, []*model.Service{newService(1, "1", "2", "3")})
	got := make(map[string]int)
	const flows = 600
	for range flows {
		pod, _, err := ask(c.ext, "udp", place(model.IPv4, "cluster 1"))
		must(t, err)
		got[pod]++
	}
	for _, pod := range []string{"pod1", "pod2", "pod3"} {
		// Seven standard deviations.
		if n := got[pod]; n < flows/3-81 || n > flows/3+81 {
			t.Errorf("%s got %d of %d flows", pod, n, flows)
		}
	}
	stays := keep(t, c.ext, "udp", place(model.IPv4, "cluster 1"))
	first, err := stays()
	for range 20 {
		if pod, err2 := stays(); err != nil || err2 != nil || pod != first {
			t.Fatalf("%s, %v, then %s, %v", first, err, pod, err2)
		}
	}
}

// TestEcho: a ping of a ClusterIP is rejected, as any protocol is.
//
// Behaviour: 7.
func TestEcho(t *testing.T) {
	c := newCluster(t)
	c.start(t, []*model.Service{newService(1, "2")})
	for f, network := range []string{"ip4:icmp", "ip6:ipv6-icmp"} {
		echo := [2][]byte{{8, 0, 0xf7, 0xff, 0, 0, 0, 0}, {128, 0, 0, 0, 0, 0, 0, 0}}[f]
		for name, want := range map[string]string{"cluster 1": "refused", "cluster 99": "timeout"} {
			a := netip.MustParseAddrPort(place(model.Family(f), name)).Addr()
			err := c.pods[1].Do(func() error {
				conn, err := net.Dial(network, a.String())
				if err != nil {
					return err
				}
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(300 * time.Millisecond))
				if _, err := conn.Write(echo); err != nil {
					return err
				}
				_, err = conn.Read(make([]byte, 64))
				return err
			})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s %s: %v, want %s", network, name, err, want)
			}
			var op *net.OpError
			if !errors.As(err, &op) {
				t.Errorf("%s %s: %v", network, name, err)
			}
		}
	}
}
