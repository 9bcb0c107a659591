package services

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// vipAddr are addresses that the node gets and loses, rangeAddr those in a range that a local route
// gives it.
var (
	vipAddr    = [2]netip.Addr{netip.MustParseAddr("192.0.2.77"), netip.MustParseAddr("2001:db8::77")}
	rangeAddr  = [2]netip.Addr{netip.MustParseAddr("203.0.113.9"), netip.MustParseAddr("2001:db8:9::9")}
	localRange = [2]string{"203.0.113.0/28", "2001:db8:9::/64"}
)

// flowsSeed repeats the steps of a run that failed.
var flowsSeed = flag.Uint64("flows.seed", 0, "seed of TestKeptFlows, 0 for the time")

// keeper is a client that keeps its UDP socket. It is not connected: the kernel routes each packet anew.
type keeper struct {
	name string
	ns   *nfttest.NS
	to   string
	from netip.Addr
	// limited is true if source ranges apply to the destination.
	limited bool
	family  model.Family
	conn    net.PacketConn
}

// answer returns who answers the kept socket, "" if there is no answer.
func (k *keeper) answer() string {
	b := make([]byte, 128)
	// Of what was asked before.
	for _ = k.conn.SetReadDeadline(time.Now().Add(time.Millisecond)); ; {
		if _, _, err := k.conn.ReadFrom(b); err != nil {
			break
		}
	}
	_ = k.conn.SetDeadline(time.Now().Add(300 * time.Millisecond))
	if _, err := k.conn.WriteTo([]byte("?"), net.UDPAddrFromAddrPort(netip.MustParseAddrPort(k.to))); err != nil {
		return ""
	}
	n, _, err := k.conn.ReadFrom(b)
	if err != nil {
		return ""
	}
	name, _, _ := strings.Cut(string(b[:n]), " ")
	return name
}

// flowWorld is what the steps of TestKeptFlows change.
type flowWorld struct {
	*cluster
	*script
	frontend *Frontend
	pods     [2][]string
	service  *corev1.Service
	has      map[string]bool
}

// slice delivers the endpoints of a family.
func (w *flowWorld) slice(f model.Family, pods ...string) {
	w.pods[f] = pods
	var addrs []string
	for _, p := range pods {
		addrs = append(addrs, podAddr(f, int(p[3]-'0')).String()+map[bool]string{true: "*"}[p == "pod2"])
	}
	w.deliver(setSlice("s1", []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6}[f], addrs...))
}

// toggle adds something to the node, or takes it away.
func (w *flowWorld) toggle(t *testing.T, f model.Family, object, what string, more ...string) {
	t.Helper()
	verb := map[bool]string{false: "add", true: "del"}[w.has[what]]
	args := append([]string{map[model.Family]string{0: "-4", 1: "-6"}[f], object, verb}, strings.Fields(what)...)
	if verb == "add" {
		args = append(args, more...)
	}
	w.cluster.node.Run(t, "ip", args...)
	w.has[what] = !w.has[what]
}

// step makes a change and says which: first one of each kind, then random ones.
func (w *flowWorld) step(t *testing.T, r *rand.Rand, i int) string {
	t.Helper()
	f := model.Family(r.IntN(2))
	const kinds = 7
	kind := i
	if i >= kinds {
		kind = r.IntN(kinds)
	}
	switch kind {
	case 0, 1:
		sets := [][]string{{}, {"pod2"}, {"pod3"}, {"pod2", "pod3"}}
		w.slice(f, sets[r.IntN(len(sets))]...)
		return fmt.Sprintf("%s endpoints %v", f, w.pods[f])
	case 2:
		w.toggle(t, f, "addr", vipAddr[f].String()+map[model.Family]string{0: "/24", 1: "/64"}[f]+" dev ext", map[model.Family][]string{1: {"nodad"}}[f]...)
		return fmt.Sprintf("address %v", w.has)
	case 3:
		w.toggle(t, f, "route", "local "+localRange[f]+" dev lo")
		return fmt.Sprintf("local route %v", w.has)
	case 4:
		ranges := [][]string{nil, {extAddr[0].String() + "/32", extAddr[1].String() + "/128"}, {"10.244.1.0/24", "fd00:10:244:1::/64"}}
		w.service = w.service.DeepCopy()
		w.service.Spec.LoadBalancerSourceRanges = ranges[r.IntN(len(ranges))]
		w.deliver(w.service.DeepCopy())
		return fmt.Sprintf("source ranges %v", w.service.Spec.LoadBalancerSourceRanges)
	case 5:
		w.service = w.service.DeepCopy()
		w.service.Spec.ExternalTrafficPolicy = []corev1.ServiceExternalTrafficPolicy{corev1.ServiceExternalTrafficPolicyLocal, corev1.ServiceExternalTrafficPolicyCluster}[r.IntN(2)]
		w.deliver(w.service.DeepCopy())
		return fmt.Sprintf("traffic policy %v", w.service.Spec.ExternalTrafficPolicy)
	default:
		nodes := [][]netip.Addr{{nodeAddr[0]}, {nodeAddr[1]}, nodeAddr[:], {vipAddr[0], vipAddr[1]}, {vipAddr[0], nodeAddr[1]}, {rangeAddr[0], rangeAddr[1]}}
		node := nodes[r.IntN(len(nodes))]
		w.deliver(setNode(node...))
		return fmt.Sprintf("node %v", node)
	}
}

// finish waits until what was delivered is in force.
func (w *flowWorld) finish(t *testing.T) {
	t.Helper()
	w.deliver()
	await(t, "the events to be taken", func() bool { return len(w.batches) == 0 })
	await(t, "the commit", func() bool { return w.frontend.Status().Pending.IsZero() })
}

// admits reports whether the source ranges let the client pass.
func (w *flowWorld) admits(k *keeper) bool {
	ranges := w.service.Spec.LoadBalancerSourceRanges
	return !k.limited || ranges == nil || slices.ContainsFunc(ranges, func(r string) bool { return netip.MustParsePrefix(r).Contains(k.from) })
}

// right returns an error unless the client is where a new one would be, or on a backend that still serves
// and may serve it.
func (w *flowWorld) right(k *keeper) error {
	got := k.answer()
	serves := slices.Contains(w.pods[k.family], got)
	if serves && w.admits(k) {
		return nil
	}
	fresh, _, _ := askFrom(k.ns, netip.Addr{}, "udp", k.to, 300*time.Millisecond)
	if got != fresh && !(serves && slices.Contains(w.pods[k.family], fresh)) {
		return fmt.Errorf("%s is answered by %q, a new client by %q", k.name, got, fresh)
	}
	return nil
}

// keepers opens the clients' sockets and sends from each.
func (w *flowWorld) keepers(t *testing.T) (all []*keeper) {
	t.Helper()
	for f := range model.NumFamilies {
		for name, from := range map[string]struct {
			ns   *nfttest.NS
			addr netip.Addr
		}{"ext": {w.ext, extAddr[f]}, "pod1": {w.cluster.pods[1], podAddr(f, 1)}, "node": {w.cluster.node, nodeAddr[f]}} {
			for what, to := range map[string]netip.AddrPort{
				"ClusterIP":    netip.AddrPortFrom(clusterIP(f, 1), 80),
				"LoadBalancer": netip.AddrPortFrom(balancerIP(f, 1), 80),
				"NodePort":     netip.AddrPortFrom(nodeAddr[f], 30080),
				"VIP NodePort": netip.AddrPortFrom(vipAddr[f], 30080),
				"range":        netip.AddrPortFrom(rangeAddr[f], 30080),
			} {
				k := &keeper{name: fmt.Sprintf("%s of %s to %s %s", f, name, what, to), ns: from.ns, from: from.addr, to: to.String(), family: f, limited: what == "LoadBalancer"}
				must(t, from.ns.Do(func() (err error) {
					k.conn, err = net.ListenPacket("udp", netip.AddrPortFrom(from.addr, 0).String())
					return err
				}))
				t.Cleanup(func() { k.conn.Close() })
				k.answer()
				all = append(all, k)
			}
		}
	}
	return all
}

// TestKeptFlows changes everything that decides where a packet goes, in random order, under clients
// that keep their UDP sockets. After each change each client is where a new one would be.
//
// Behaviour: 48, 106, 107, 109, 113.
func TestKeptFlows(t *testing.T) {
	const steps = 40
	for _, tt := range []struct {
		name     string
		prefixes []netip.Prefix
	}{
		{"primary", nil},
		{"all", anywhere[:]},
		{"prefixes", []netip.Prefix{netip.MustParsePrefix("192.0.2.64/26"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("2001:db8::77/128"), netip.MustParsePrefix("2001:db8:9::/48")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			seed := *flowsSeed
			if seed == 0 {
				seed = uint64(time.Now().UnixNano()) //nolint:gosec // any number
			}
			r := rand.New(rand.NewPCG(seed, 0))
			t.Logf("seed %d", seed)
			c := newCluster(t)
			s := newStack(t, c.node)
			s.aggregator(t)
			w := &flowWorld{cluster: c, has: map[string]bool{}, service: setService("s1", 30080, clusterIP(0, 1).String(), clusterIP(1, 1).String())}
			w.service.Spec.Type = corev1.ServiceTypeLoadBalancer
			w.service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: balancerIP(0, 1).String()}, {IP: balancerIP(1, 1).String()}}
			w.script = newScript(setNode(), w.service.DeepCopy())
			w.frontend, _ = s.frontend(t, w.script, tt.prefixes...)
			await(t, "the first commit", func() bool { return w.frontend.Status().Published })
			clients := w.keepers(t)
			for i := range steps {
				what := w.step(t, r, i)
				w.finish(t)
				t.Logf("step %d, %s", i, what)
				var wg sync.WaitGroup
				for _, k := range clients {
					wg.Go(func() {
						var err error
						for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); {
							if err = w.right(k); err == nil {
								return
							}
							// One that is rejected at once would use up the ports of the clients.
							<-time.After(20 * time.Millisecond)
						}
						t.Errorf("step %d, %s: %v", i, what, err)
					})
				}
				wg.Wait()
				if t.Failed() {
					t.Log(c.node.ListRuleset(t))
					t.Log(c.node.Run(t, "conntrack", "-L", "-p", "udp"))
					return
				}
			}
		})
	}
}
