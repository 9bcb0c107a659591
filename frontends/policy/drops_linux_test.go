package policy

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// closed has a pod that may not send anything.
const closed = dbPod + `---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: closed, namespace: shop}
spec: {podSelector: {}, policyTypes: [Egress]}
`

// dropLab is a node with a pod that may not send anything, and the frontend of the node.
type dropLab struct {
	*Frontend
	node, pod *nfttest.NS
	gateway   netip.Addr
	dir       string
}

func newDropLab(t *testing.T, cfg Config) *dropLab {
	t.Helper()
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	gateway := netip.MustParsePrefix("10.244.1.1/24")
	l := &dropLab{node: nfttest.New(t), pod: nfttest.New(t), gateway: gateway.Addr(), dir: t.TempDir()}
	nfttest.Veth(t, nfttest.Port{NS: l.node, Name: "pod", Addrs: []netip.Prefix{gateway}},
		nfttest.Port{NS: l.pod, Name: "eth0", Addrs: []netip.Prefix{netip.MustParsePrefix("10.244.1.5/24")}})
	if err := os.WriteFile(filepath.Join(l.dir, "closed.yaml"), []byte(closed), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg.Socket = aggregatortest.StartIn(t, l.node).Socket
	l.Frontend, _ = runFrontend(t, l.dir, cfg)
	await(t, "the first commit", func() bool { return l.Ready() == nil })
	return l
}

// send sends packets from the pod to the node.
func (l *dropLab) send(t *testing.T, packets int) {
	t.Helper()
	if err := l.pod.Do(func() error {
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
	}); err != nil {
		t.Fatal(err)
	}
}

// TestDropsOfKernel sends packets that a policy drops: the metric has what the kernel has
// counted.
//
// Policy behaviour: 53, 56.
func TestDropsOfKernel(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	l := newDropLab(t, Config{Registerer: reg})
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
	// A change of the policy's pods does not begin anew.
	other := strings.NewReplacer("name: db,", "name: other,", "uid-db", "uid-other", "10.244.1.5", "10.244.1.6").Replace(dbPod)
	if err := os.WriteFile(filepath.Join(l.dir, "other.yaml"), []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	await(t, "another pod", func() bool {
		return read(l.state, (*model.Model).Stats).LocalPods == 2 && l.state.backlog.Oldest().IsZero()
	})
	if got := dropped(t, reg); got != packets {
		t.Errorf("after a change %v packets are dropped, want %d", got, packets)
	}
}

// dropped returns the number of packets that the policy shop/closed has dropped.
func dropped(t *testing.T, reg *prometheus.Registry) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if l := m.GetLabel(); f.GetName() == metricDropped && len(l) == 2 && l[0].GetValue() == "egress" && l[1].GetValue() == "shop/closed" {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}
