package policy

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-proxy/weft/frontends/testing/nritest"
)

// answered sends a packet every millisecond from the pod to the node's port 53 until the function that it returns is
// called, which returns the number of answers.
func (l *podLab) answered(t *testing.T) (stop func() int) {
	t.Helper()
	var c net.Conn
	must(t, l.pod.Do(func() (err error) { c, err = net.Dial("udp", netip.AddrPortFrom(l.gateway, 53).String()); return err }))
	done, answers := make(chan struct{}), make(chan int)
	go func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				_, _ = c.Write([]byte{1})
			}
		}
	}()
	go func() {
		n := 0
		for b := make([]byte, 1); ; n++ {
			if _, err := c.Read(b); err != nil {
				answers <- n
				return
			}
		}
	}()
	return func() int { close(done); _ = c.Close(); return <-answers }
}

// TestPacketsOfNewPod starts a pod, and sends packets from it as soon as its containers may start: those that
// policies do not allow are dropped before the API reports the pod, while it does, after it has forgotten the pod,
// while the runtime restarts, and until the runtime has stopped the pod.
//
// Policy behaviour: 46, 49, 50, 51.
func TestPacketsOfNewPod(t *testing.T) {
	rt := nritest.New(t)
	rt.Start(t)
	reg := prometheus.NewPedanticRegistry()
	l := newPodLab(t, Config{RuntimeSocket: rt.Socket, Registerer: reg}, closed)
	connected := func(want float64) func() bool {
		return func() bool { return valueOf(t, reg, metricRuntimeConnected) == want }
	}
	open := l.open(t, 53)
	db := nritest.Pod("db", "10.244.1.5")
	for range 3 {
		rt.RunPod(t, db)
		stop := l.answered(t)
		if exchanges(open) {
			t.Error("a flow of the pod that had the address before is answered")
		}
		l.write(t, "db", dbPod)
		l.write(t, "mark", podLike("mark", "10.244.1.6"))
		await(t, "the pods of the API", func() bool { return strings.Contains(l.node.ListRuleset(t), "10.244.1.6") })
		for _, name := range []string{"db.yaml", "mark.yaml"} {
			must(t, os.Remove(filepath.Join(l.dir, name)))
		}
		await(t, "the end of the pods of the API", func() bool { return !strings.Contains(l.node.ListRuleset(t), "10.244.1.6") })
		rt.End()
		await(t, "the end of the runtime", connected(0))
		rt.Start(t, db)
		await(t, "the runtime", connected(1))
		if n := stop(); n > 0 {
			t.Errorf("%d packets of the pod were answered", n)
		}
		rt.StopPod(t, db)
		await(t, "an answer after the end of the pod", func() bool { return exchanges(open) })
	}
}
