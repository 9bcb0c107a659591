package policy

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// exchanges reports whether the node answers what the pod sends.
func exchanges(c net.Conn) bool {
	_ = c.SetDeadline(time.Now().Add(500 * time.Millisecond))
	b := []byte{1}
	if _, err := c.Write(b); err != nil {
		return false
	}
	_, err := c.Read(b)
	return err == nil
}

// open opens a UDP flow from the pod to a port of the node.
func (l *podLab) open(t *testing.T, port uint16) net.Conn {
	t.Helper()
	at := netip.AddrPortFrom(l.gateway, port).String()
	l.node.Echo(t, at)
	var c net.Conn
	must(t, l.pod.Do(func() (err error) { c, err = net.Dial("udp", at); return err }))
	t.Cleanup(func() { _ = c.Close() })
	await(t, "an answer before the policy", func() bool { return exchanges(c) })
	return c
}

// TestNarrowingWithFlows narrows what a pod may reach while flows are open: the kernel drops the packets of the one
// that is denied, and forgets it, so that the recheck ends and it stays cut. What is allowed goes on.
//
// Policy behaviour: 47, 48.
func TestNarrowingWithFlows(t *testing.T) {
	l := newPodLab(t, Config{}, dbPod)
	// A chain of type nat has the kernel track connections, as for Services.
	l.node.Nft(t, "table ip nat { chain pre { type nat hook prerouting priority dstnat; }; }")
	denied, allowed := l.open(t, 53), l.open(t, 80)
	l.write(t, "policy", strings.Replace(closed, "[Egress]", "[Egress], egress: [{ports: [{port: 80, protocol: UDP}]}]", 1))
	await(t, "the recheck", func() bool { return strings.Contains(l.node.ListRuleset(t), "@recheck") })
	cut := func(when string) {
		t.Helper()
		if exchanges(denied) || !exchanges(allowed) {
			t.Errorf("%s: the flow that is denied is answered, or the other one is not", when)
		}
	}
	cut("while connections are rechecked")
	await(t, "the end of the recheck", func() bool {
		return len(l.content.Rechecked()) == 0 && !strings.Contains(l.node.ListRuleset(t), "@recheck")
	})
	cut("after the recheck")
	if n := testutil.ToFloat64(l.flows.metrics.deleted); n < 1 {
		t.Errorf("%v flows were deleted, want the one that is denied", n)
	}
}
