package aggregator_test

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// wantPasses compares how often the table was read since the last call.
func (n *flowNode) wantPasses(t *testing.T, what string, want uint64) {
	t.Helper()
	now := n.conn.Passes()
	same(t, what+": readings of the table", now-n.passes, want)
	n.passes = now
}

// TestFlowsAreReadWhenUDPLeft counts how often the table is read: a commit that takes
// no UDP backend away, and gives no destination its first, does not look at it.
func TestFlowsAreReadWhenUDPLeft(t *testing.T) {
	const (
		webTo1 = "10.96.0.1 . tcp . 80 . 0 : 10.1.0.1 . 8080"
		webTo2 = "10.96.0.1 . tcp . 80 . 0 : 10.1.0.2 . 8080"
		nodeTC = "tcp . 30080 . 0 : 10.1.0.1 . 8080"
		also2  = "10.96.0.1 . udp . 53 . 1 : 10.1.0.2 . 8080"
		twice1 = "10.96.0.1 . udp . 53 . 2 : 10.1.0.1 . 8080"
	)
	n := newFlowNode(t)
	d, stop := n.run(t)
	for _, step := range []struct {
		what     string
		elements []string
		want     uint64
	}{
		{"TCP services come", []string{webTo1, nodeTC}, 0},
		{"a TCP endpoint is replaced", []string{webTo2, nodeTC}, 0},
		{"TCP services go", []string{webTo2}, 0},
		{"a UDP service comes", []string{webTo2, dnsTo1}, 1},
		{"it gets another backend", []string{webTo2, dnsTo1, also2}, 0},
		{"a backend takes another slot", []string{webTo2, dnsTo1, also2, twice1}, 0},
		{"and gives it up", []string{webTo2, dnsTo1, also2}, 0},
		{"TCP changes beside it", []string{webTo1, nodeTC, dnsTo1, also2}, 0},
		{"a backend goes", []string{webTo1, nodeTC, dnsTo1}, 1},
		{"many change at once", []string{webTo1, dnsTo2, nodeTo1, otherTo1}, 1},
		{"all of UDP goes", []string{webTo1}, 1},
	} {
		n.commitAndWait(t, d, step.elements...)
		n.wantPasses(t, step.what, step.want)
	}
	stop()

	// A start compares all flows, if there is a UDP service that they may belong to.
	d, stop = n.run(t)
	n.publish(t, d, webTo1)
	stop()
	n.wantPasses(t, "a start without UDP", 0)
	d, stop = n.run(t)
	n.publish(t, d, webTo1, dnsTo1)
	stop()
	n.wantPasses(t, "a start with a first UDP service, and the commit of it", 2)
	d, stop = n.run(t)
	n.publish(t, d, webTo1, dnsTo1)
	stop()
	n.wantPasses(t, "a start with a UDP service", 1)
}

// TestFlowsOfAKilledDaemon kills it at the commit that deletes a UDP service, before
// or after the kernel has it: the next one removes the service's flows where the
// kernel has no way for them any more, without being told of the service again, and
// no others.
//
// Behaviour: 112, 114.
func TestFlowsOfAKilledDaemon(t *testing.T) {
	for _, tt := range []struct {
		instant string
		left    []string
	}{
		{"before", []string{flow1, flowOther, flowPort}},
		{"after", []string{flowOther}},
	} {
		t.Run(tt.instant, func(t *testing.T) {
			n := newFlowNode(t)
			m := mortal{Socket: aggregatortest.Socket(t), StateDir: t.TempDir(), Flows: true}
			ctx := aggregatortest.Context(t)
			dial := func() *client.Client {
				c, err := client.Dial(ctx, client.Config{Socket: m.Socket, Publisher: "tester"})
				must(t, err)
				t.Cleanup(func() { _ = c.Close() })
				return c
			}
			life := m
			life.Instant, life.Commit = tt.instant, 2
			daemon := life.spawn(t, n.ns)
			must(t, errorOf(dial().Apply(ctx, fronts(dnsTo1, otherTo1, nodeTo1))))
			n.send(t, 4001, "10.96.0.1:53", true)
			n.send(t, 4002, "10.96.0.2:53", true)
			n.send(t, 4003, "10.1.0.2:30053", true)
			if _, err := dial().Apply(ctx, fronts(otherTo1)); err == nil {
				t.Fatal("the daemon lives on")
			}
			_ = daemon.Wait()
			n.wantFlows(t, flow1, flowOther, flowPort)
			if _, noted := state(t, m.StateDir); len(noted) == 0 {
				t.Fatal("nothing is noted")
			}

			m.spawn(t, n.ns)
			aggregatortest.Eventually(t, "the flows that were noted are removed", func() bool {
				_, noted := state(t, m.StateDir)
				return len(noted) == 0
			})
			n.wantFlows(t, tt.left...)
		})
	}
}

// TestFlowsOfAnotherPublisher has a publisher with a watched map of its own lead another's
// destination to the same backend, and take that back: the flows stay as long as the other
// map leads to it.
func TestFlowsOfAnotherPublisher(t *testing.T) {
	n := newFlowNode(t)
	d, stop := n.run(t)
	n.commitAndWait(t, d, dnsTo1)
	n.send(t, 4001, "10.96.0.1:53", true)
	n.wantFlows(t, flow1)
	ctx := aggregatortest.Context(t)
	other := d.Dial(t, "other")
	for _, elements := range [][]string{{dnsTo1}, {dnsTo2}, {dnsTo1}} {
		f := fronts(elements...)
		f.Tables[0].Name, f.Tables[0].Chains = "other", nil
		mustApply(t, other, f)
	}
	must(t, errorOf(d.Aggregator.Delete(ctx, "other", "services")))
	stop()
	n.wantFlows(t, flow1)
	d, stop = n.run(t)
	n.publish(t, d, dnsTo2)
	stop()
	n.wantFlows(t)
}

// lineConn is a connection that can be asked whether it lives.
type lineConn struct {
	net.Conn
	in *bufio.Reader
}

// dialTCP has a server echo on one address, and a client connect to another.
func (n *flowNode) dialTCP(t *testing.T, serve, to string) *lineConn {
	t.Helper()
	var l net.Listener
	n.do(t, func() (err error) {
		l, err = net.Listen("tcp4", serve)
		return err
	})
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
		}
	}()
	c := &lineConn{}
	n.do(t, func() (err error) {
		c.Conn, err = net.DialTimeout("tcp4", to, 5*time.Second)
		return err
	})
	t.Cleanup(func() { _ = c.Close() })
	c.in = bufio.NewReader(c)
	c.check(t)
	return c
}

func (c *lineConn) check(t *testing.T) {
	t.Helper()
	must(t, c.SetDeadline(time.Now().Add(3*time.Minute)))
	must(t, errorOf(io.WriteString(c, "alive\n")))
	if line, err := c.in.ReadString('\n'); err != nil || line != "alive\n" {
		t.Fatalf("connection answers %q, %v", line, err)
	}
}
