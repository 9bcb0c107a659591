package policy

import (
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/server"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/conntrack"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// closed lets a pod send nothing.
const closed = `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: closed, namespace: shop}
spec: {podSelector: {}, policyTypes: [Egress]}
`

// podLab is a node with a pod, an aggregator that lists the node's connections, and a frontend on manifests. Flows
// that are denied are deleted at once.
type podLab struct {
	*Frontend
	node, pod *nfttest.NS
	gateway   netip.Addr
	dir       string
}

func newPodLab(t *testing.T, cfg Config, manifests string) *podLab {
	t.Helper()
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	gateway := netip.MustParsePrefix("10.244.1.1/24")
	l := &podLab{node: nfttest.New(t), pod: nfttest.New(t), gateway: gateway.Addr(), dir: t.TempDir()}
	nfttest.Veth(t, nfttest.Port{NS: l.node, Name: "pod", Addrs: []netip.Prefix{gateway}},
		nfttest.Port{NS: l.pod, Name: "eth0", Addrs: []netip.Prefix{netip.MustParsePrefix("10.244.1.5/24")}})
	l.write(t, "first", manifests)
	conn, err := kernel.Open(kernel.Config{NetNS: l.node.FD()})
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	var table *conntrack.Conn
	must(t, l.node.Do(func() (err error) { table, err = conntrack.Open(); return err }))
	t.Cleanup(func() { _ = table.Close() })
	cfg.Socket = aggregatortest.Start(t, aggregatortest.Config{
		Config: aggregator.Config{Kernel: conn, StateDir: t.TempDir(), Rate: rate.Inf},
		Limits: func(c *server.Config) { c.Flows = table },
	}).Socket
	l.Frontend, _ = runFrontend(t, l.dir, cfg, func(f *Frontend) { f.flows.answerTime = 0 })
	await(t, "the first commit", func() bool { return l.Ready() == nil })
	return l
}

func (l *podLab) write(t *testing.T, name, text string) {
	t.Helper()
	put(t, filepath.Join(l.dir, name+".yaml"), text)
}

// send sends packets from the pod to the node.
func (l *podLab) send(t *testing.T, packets int) {
	t.Helper()
	must(t, l.pod.Do(func() error {
		c, err := net.Dial("udp", netip.AddrPortFrom(l.gateway, 53).String())
		if err != nil {
			return err
		}
		defer c.Close()
		for range packets {
			if _, err := c.Write([]byte("query")); err != nil {
				return err
			}
		}
		return nil
	}))
}

// TestDropsOfKernel sends packets that a policy drops: the metric has what the kernel has
// counted.
//
// Policy behaviour: 56.
func TestDropsOfKernel(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	l := newPodLab(t, Config{Registerer: reg}, dbPod+"---\n"+closed)
	if got := dropped(t, reg); got != 0 {
		t.Errorf("%v packets are dropped before one is sent", got)
	}

	const packets = 7
	l.send(t, packets)
	await(t, "the dropped packets", func() bool { return dropped(t, reg) == packets })
	_, counter, _ := strings.Cut(l.node.ListRuleset(t), `comment "shop/closed egress"`)
	counter, _, _ = strings.Cut(strings.TrimSpace(counter), "\n")
	if !strings.HasPrefix(counter, "packets "+strconv.Itoa(packets)+" ") {
		t.Errorf("the kernel has counted %q", counter)
	}
}

// dropped returns the number of packets that the policy shop/closed has dropped.
func dropped(t *testing.T, reg *prometheus.Registry) float64 {
	t.Helper()
	families, err := reg.Gather()
	must(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if l := m.GetLabel(); f.GetName() == metricDropped && len(l) == 2 && l[0].GetValue() == "egress" && l[1].GetValue() == "shop/closed" {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}
