package aggregator_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	ctnetlink "github.com/ti-mo/conntrack"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/conntrack"
)

// flowNode is a namespace in which a daemon sends real packets to backends, and
// removes the flows that its commits make stale.
type flowNode struct {
	*stickyNode
	// list reads the flows, independently of the code under test.
	list *ctnetlink.Conn
	conn *conntrack.Conn
	dir  string
	// passes is conn's count when it was compared last.
	passes uint64
}

func newFlowNode(t *testing.T) *flowNode {
	t.Helper()
	n := &flowNode{stickyNode: newStickyNode(t), dir: t.TempDir()}
	n.do(t, func() (err error) {
		if n.list, err = ctnetlink.Dial(nil); err != nil {
			return err
		}
		n.conn, err = conntrack.Open()
		return err
	})
	t.Cleanup(func() {
		if err := errors.Join(n.list.Close(), n.conn.Close()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return n
}

// run starts a daemon; the connection to the kernel dies with stop, as it does when
// the process is killed.
func (n *flowNode) run(t *testing.T) (d *aggregatortest.Daemon, stop func()) {
	t.Helper()
	d, k := startKernel(t, n.ns, aggregator.Config{Flows: n.conn, StateDir: n.dir}, false)
	return d, func() {
		t.Helper()
		// A stop waits for the removal of what its last commit made stale.
		must(t, errors.Join(d.Stop(), k.Close()))
	}
}

// fronts returns a fragment that leads destinations to backends: "10.96.0.1 . udp .
// 53 . 0 : 10.1.0.1 . 8080", and without address for a NodePort. New connections
// take slot 0.
func fronts(elements ...string) *weftv1.Fragment {
	vips := &weftv1.Set{Name: "endpoints", Role: weftv1.MapRole_MAP_ROLE_CONNTRACK, Typeof: "ip daddr . meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport"}
	ports := &weftv1.Set{Name: "nodeport-endpoints", Role: weftv1.MapRole_MAP_ROLE_CONNTRACK, Typeof: "meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport"}
	for _, text := range elements {
		key, value, _ := strings.Cut(text, " : ")
		m := ports
		if strings.Count(key, " . ") == 3 {
			m = vips
		}
		m.Elements = append(m.Elements, &weftv1.Element{Key: key, Value: value})
	}
	return &weftv1.Fragment{Name: "services", Tables: []*weftv1.Table{{
		Family: "ip", Name: "demo", Maps: []*weftv1.Set{vips, ports},
		Chains: []*weftv1.Chain{{Name: "output", Type: "nat", Hook: "output", Priority: "-100", Rules: []*weftv1.Rule{
			{Text: "meta l4proto { tcp, udp } dnat to ip daddr . meta l4proto . th dport . numgen random mod 1 map @endpoints"},
			// As if the address was the node's when the flow began.
			{Text: "ip daddr 10.1.0.3 udp dport 30053 dnat to 10.1.0.1:8080"},
			{Text: "ip daddr 10.96.9.9 udp dport 30053 dnat to 10.1.0.1:8080"},
			{Text: "fib daddr type local meta l4proto { tcp, udp } dnat to meta l4proto . th dport . numgen random mod 1 map @nodeport-endpoints"},
		}}},
	}}}
}

// publish commits the fragment that leads to backends.
func (n *flowNode) publish(t *testing.T, d *aggregatortest.Daemon, elements ...string) {
	t.Helper()
	mustApply(t, d.Dial(t, "tester"), fronts(elements...))
}

// commitAndWait publishes and waits until the flows that the commit makes stale are gone,
// which its event tells: what is sent after that is not taken for one of them.
func (n *flowNode) commitAndWait(t *testing.T, d *aggregatortest.Daemon, elements ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(aggregatortest.Context(t))
	defer cancel()
	watching, commits := make(chan struct{}), make(chan uint64, 16)
	go func() {
		_ = d.Aggregator.Watch(ctx, func() error { close(watching); return nil }, func(e *weftv1.WatchResponse) error {
			if c := e.GetCommit(); c != nil {
				commits <- c.GetRevision()
			}
			return nil
		})
	}()
	<-watching
	revision, err := d.Dial(t, "tester").Apply(ctx, fronts(elements...))
	must(t, err)
	for done := uint64(0); done < revision; {
		select {
		case done = <-commits:
		case <-ctx.Done():
			t.Fatalf("no event of revision %d", revision)
		}
	}
}

// send sends a packet from a source port to a destination, and waits for the answer
// unless there will be none.
func (n *flowNode) send(t *testing.T, from int, to string, answered bool) {
	t.Helper()
	n.do(t, func() error {
		conn, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.IPv4(10, 9, 0, 1), Port: from}, net.UDPAddrFromAddrPort(netip.MustParseAddrPort(to)))
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		if _, err := conn.Write([]byte("?")); err != nil || !answered {
			return err
		}
		if err := conn.SetReadDeadline(time.Now().Add(3 * time.Minute)); err != nil {
			return err
		}
		_, err = conn.Read(make([]byte, 64))
		return err
	})
}

// flows returns the table in words, sorted: "udp 4000 -> 10.96.0.1:53 = 10.1.0.1:8080".
func (n *flowNode) flows(t *testing.T) []string {
	t.Helper()
	list, err := n.list.Dump(nil)
	must(t, err)
	var out []string
	for _, f := range list {
		name := map[uint8]string{6: "tcp", 17: "udp", 132: "sctp"}[f.TupleOrig.Proto.Protocol]
		dst := netip.AddrPortFrom(f.TupleOrig.IP.DestinationAddress, f.TupleOrig.Proto.DestinationPort)
		reply := netip.AddrPortFrom(f.TupleReply.IP.SourceAddress, f.TupleReply.Proto.SourcePort)
		out = append(out, fmt.Sprintf("%s %d -> %s = %s", name, f.TupleOrig.Proto.SourcePort, dst, reply))
	}
	slices.Sort(out)
	return out
}

func (n *flowNode) wantFlows(t *testing.T, want ...string) {
	t.Helper()
	if got := n.flows(t); !slices.Equal(got, want) {
		t.Fatalf("flows:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

const (
	dnsTo1   = "10.96.0.1 . udp . 53 . 0 : 10.1.0.1 . 8080"
	dnsTo2   = "10.96.0.1 . udp . 53 . 0 : 10.1.0.2 . 8080"
	otherTo1 = "10.96.0.2 . udp . 53 . 0 : 10.1.0.1 . 8080"
	nodeTo1  = "udp . 30053 . 0 : 10.1.0.1 . 8080"
	nodeTo2  = "udp . 30053 . 0 : 10.1.0.2 . 8080"

	flow1     = "udp 4001 -> 10.96.0.1:53 = 10.1.0.1:8080"
	flowOther = "udp 4002 -> 10.96.0.2:53 = 10.1.0.1:8080"
	flowPort  = "udp 4003 -> 10.1.0.2:30053 = 10.1.0.1:8080"
	unrouted  = "udp 4001 -> 10.96.0.1:53 = 10.96.0.1:53"
	// flowNowhere is to an address that no service has.
	flowNowhere = "udp 4004 -> 10.96.0.9:53 = 10.96.0.9:53"
)

// sent is a packet from a source port, and whether there is an answer.
type sent struct {
	from     int
	to       string
	answered bool
}

// staleFlows are changes of what destinations lead to, and the flows that are left then.
var staleFlows = []struct {
	name          string
	before, after [][]string
	// deleted has the fragment deleted after all.
	deleted     bool
	sent        []sent
	flows, left []string
}{
	{
		name: "a backend left", before: [][]string{{dnsTo1, otherTo1}}, after: [][]string{{dnsTo2, otherTo1}},
		sent:  []sent{{4001, "10.96.0.1:53", true}, {4002, "10.96.0.2:53", true}},
		flows: []string{flow1, flowOther}, left: []string{flowOther},
	},
	{
		// Flows that were translated to it go, also one to an address that is not the node's at
		// that moment. Those of the host to the same port elsewhere stay.
		name: "NodePorts", before: [][]string{{nodeTo1}}, after: [][]string{{nodeTo2}, nil},
		sent: []sent{{4001, "10.1.0.2:30053", true}, {4002, "127.0.0.1:30053", false}, {4003, "10.96.9.9:30053", true}, {4004, "10.96.9.8:30053", false}},
		flows: []string{
			"udp 4001 -> 10.1.0.2:30053 = 10.1.0.1:8080", "udp 4002 -> 127.0.0.1:30053 = 10.1.0.1:8080",
			"udp 4003 -> 10.96.9.9:30053 = 10.1.0.1:8080", "udp 4004 -> 10.96.9.8:30053 = 10.96.9.8:30053",
		},
		left: []string{"udp 4004 -> 10.96.9.8:30053 = 10.96.9.8:30053"},
	},
	{
		// While the service has no endpoint, what a client sends is not translated.
		name: "into the void", before: [][]string{{otherTo1}, {dnsTo1, otherTo1}, {otherTo1}}, after: [][]string{{dnsTo1, otherTo1}},
		sent:  []sent{{4001, "10.96.0.1:53", false}, {4002, "10.96.0.2:53", true}},
		flows: []string{unrouted, flowOther}, left: []string{flowOther},
	},
	{
		// An external address, another port, a NodePort.
		name: "new addresses", before: [][]string{{otherTo1}},
		after: [][]string{{otherTo1, dnsTo1, "10.96.0.2 . udp . 54 . 1000000 : 10.1.0.1 . 8080", nodeTo1}},
		sent:  []sent{{4001, "10.96.0.1:53", false}, {4002, "10.96.0.2:54", false}, {4003, "10.1.0.2:30053", false}, {4004, "10.96.0.9:53", false}},
		flows: []string{unrouted, "udp 4002 -> 10.96.0.2:54 = 10.96.0.2:54", "udp 4003 -> 10.1.0.2:30053 = 10.1.0.2:30053", flowNowhere},
		left:  []string{flowNowhere},
	},
	{
		name: "scaled to zero", before: [][]string{{dnsTo1, otherTo1, nodeTo1}}, after: [][]string{{otherTo1}},
		sent:  []sent{{4001, "10.96.0.1:53", true}, {4002, "10.96.0.2:53", true}, {4003, "10.1.0.2:30053", true}},
		flows: []string{flow1, flowOther, flowPort}, left: []string{flowOther},
	},
	{
		name: "deleted", before: [][]string{{dnsTo1, nodeTo1}}, deleted: true,
		sent:  []sent{{4001, "10.96.0.1:53", true}, {4003, "10.1.0.2:30053", true}, {4004, "10.96.0.9:53", false}},
		flows: []string{flow1, flowPort, flowNowhere}, left: []string{flowNowhere},
	},
}

// TestStaleFlows has clients send to destinations, and changes what these lead to.
//
// Behaviour: 106, 107, 109, 111, 112, 113.
func TestStaleFlows(t *testing.T) {
	for _, tt := range staleFlows {
		t.Run(tt.name, func(t *testing.T) {
			n := newFlowNode(t)
			d, stop := n.run(t)
			for _, elements := range tt.before {
				n.commitAndWait(t, d, elements...)
			}
			for _, p := range tt.sent {
				n.send(t, p.from, p.to, p.answered)
			}
			n.wantFlows(t, tt.flows...)
			for _, elements := range tt.after {
				n.publish(t, d, elements...)
			}
			if tt.deleted {
				must(t, errorOf(d.Dial(t, "tester").Delete(aggregatortest.Context(t), "", "services")))
			}
			stop()
			n.wantFlows(t, tt.left...)
		})
	}
}

// TestFlowsOfServingBackends moves a backend among the slots of a service, as a
// change of policy or its termination does: its flows stay as long as it is in any.
//
// Behaviour: 108.
func TestFlowsOfServingBackends(t *testing.T) {
	n := newFlowNode(t)
	d, stop := n.run(t)
	n.publish(t, d, dnsTo1)
	n.send(t, 4001, "10.96.0.1:53", true)
	for _, slot := range []int{1, 1000000, 1000007} {
		n.publish(t, d, dnsTo2, fmt.Sprintf("10.96.0.1 . udp . 53 . %d : 10.1.0.1 . 8080", slot))
	}
	stop()
	n.wantFlows(t, flow1)
	d, stop = n.run(t)
	n.publish(t, d, dnsTo2)
	stop()
	n.wantFlows(t)
}

// TestFlowsOfTCPAndSCTP takes away the backend of all: neither is touched, and the
// TCP connection goes on.
//
// Behaviour: 110.
func TestFlowsOfTCPAndSCTP(t *testing.T) {
	n := newFlowNode(t)
	d, stop := n.run(t)
	n.publish(t, d, dnsTo1, "10.96.0.1 . tcp . 53 . 0 : 10.1.0.1 . 8080", "10.96.0.1 . sctp . 53 . 0 : 10.1.0.1 . 8080")
	c := n.dialTCP(t, "10.1.0.1:8080", "10.96.0.1:53")
	n.send(t, 4001, "10.96.0.1:53", true)
	client, vip, backend := netip.MustParseAddr("10.9.0.1"), netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("10.1.0.1")
	sctp := ctnetlink.NewFlow(132, 0, client, vip, 4009, 53, 600, 0)
	sctp.TupleReply.IP.SourceAddress, sctp.TupleReply.Proto.SourcePort = backend, 8080
	sctp.ProtoInfo = ctnetlink.ProtoInfo{SCTP: &ctnetlink.ProtoInfoSCTP{State: 3, VTagOriginal: 1, VTagReply: 2}}
	must(t, n.list.Create(sctp))
	keep := slices.DeleteFunc(n.flows(t), func(f string) bool { return strings.HasPrefix(f, "udp") })
	if len(keep) != 2 {
		t.Fatalf("flows %q: want those of TCP and SCTP", keep)
	}
	n.publish(t, d)
	n.publish(t, d, dnsTo2, "10.96.0.1 . tcp . 53 . 0 : 10.1.0.2 . 8080", "10.96.0.1 . sctp . 53 . 0 : 10.1.0.2 . 8080")
	stop()
	n.wantFlows(t, keep...)
	c.check(t)

	// Nor does the comparison of all flows at a start touch them.
	d, stop = n.run(t)
	n.publish(t, d, dnsTo2, "10.96.0.1 . tcp . 53 . 0 : 10.1.0.2 . 8080", "10.96.0.1 . sctp . 53 . 0 : 10.1.0.2 . 8080")
	stop()
	n.wantFlows(t, keep...)
	c.check(t)
}

// TestFlowsOverARestart has the daemon die and come back: what leads to endpoints
// that are still there stays, before and after the publisher returns; what the
// publisher no longer has goes.
//
// Behaviour: 114.
func TestFlowsOverARestart(t *testing.T) {
	n := newFlowNode(t)
	d, stop := n.run(t)
	n.publish(t, d, dnsTo1, otherTo1, nodeTo1)
	n.send(t, 4001, "10.96.0.1:53", true)
	n.send(t, 4002, "10.96.0.2:53", true)
	n.send(t, 4003, "10.1.0.2:30053", true)
	all := []string{flow1, flowOther, flowPort}
	stop()
	n.wantFlows(t, all...)
	_, stop = n.run(t)
	stop()
	n.wantFlows(t, all...)
	d, stop = n.run(t)
	n.publish(t, d, dnsTo1, otherTo1, nodeTo1)
	stop()
	n.wantFlows(t, all...)
	// The endpoint left while the daemon was down, one service was deleted.
	d, stop = n.run(t)
	n.publish(t, d, dnsTo2, nodeTo1)
	stop()
	n.wantFlows(t, all[2])
}

// orderedFlows notes when it is asked to remove flows.
type orderedFlows struct {
	*conntrack.Conn
	flushed func(stale []conntrack.Stale)
}

func (o *orderedFlows) Flush(ctx context.Context, stale []conntrack.Stale) (int, error) {
	o.flushed(stale)
	return o.Conn.Flush(ctx, stale)
}

// TestFlowsComeAfterTheCommit has a client send without a pause from one port while
// its backend is replaced again and again: at each removal the kernel leads new
// packets to the new backend, or else they would make the old entry again.
//
// Behaviour: 105, 116.
func TestFlowsComeAfterTheCommit(t *testing.T) {
	n := newFlowNode(t)
	seen := make(chan string, 100)
	flows := &orderedFlows{Conn: n.conn, flushed: func(stale []conntrack.Stale) {
		// A removal of late answers belongs to an earlier commit.
		if !slices.ContainsFunc(stale, func(c conntrack.Stale) bool { return !c.Answered }) {
			return
		}
		text, err := n.ns.Output("", "nft", "list", "map", "ip", "demo", "endpoints")
		seen <- fmt.Sprintln(text, err)
	}}
	d, _ := startKernel(t, n.ns, aggregator.Config{Flows: flows}, false)
	n.publish(t, d, dnsTo1)
	<-seen
	done, sent := make(chan struct{}), make(chan error, 1)
	go func() { sent <- n.keepSending(done) }()
	for i := range 10 {
		to := []string{dnsTo2, dnsTo1}[i%2]
		n.publish(t, d, to)
		_, backend, _ := strings.Cut(to, " : ")
		backend, _, _ = strings.Cut(backend, " ")
		if text := <-seen; !strings.Contains(text, backend) {
			t.Fatalf("flows are removed while the kernel has:\n%s", text)
		}
		// An answer on its way makes an entry of its own.
		want := "udp 4001 -> 10.96.0.1:53 = " + backend + ":8080"
		aggregatortest.Eventually(t, "the flow leads to "+backend, func() bool { return slices.Contains(n.flows(t), want) })
	}
	close(done)
	must(t, <-sent)
	// A change that concerns no UDP destination asks for nothing.
	n.publish(t, d, dnsTo1, "10.96.0.1 . tcp . 53 . 0 : 10.1.0.1 . 8080")
	n.publish(t, d, dnsTo1, "10.96.0.1 . tcp . 53 . 0 : 10.1.0.2 . 8080")
	n.publish(t, d, dnsTo1)
	must(t, d.Stop())
	if len(seen) > 0 {
		t.Errorf("%d removals for changes of TCP", len(seen))
	}
}

// keepSending sends from one port until done is closed.
func (n *flowNode) keepSending(done <-chan struct{}) error {
	return n.ns.Do(func() error {
		conn, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.IPv4(10, 9, 0, 1), Port: 4001}, &net.UDPAddr{IP: net.IPv4(10, 96, 0, 1), Port: 53})
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		tick := time.NewTicker(200 * time.Microsecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return nil
			case <-tick.C:
				_, _ = conn.Write([]byte("?")) // what comes back is of no interest
			}
		}
	})
}
