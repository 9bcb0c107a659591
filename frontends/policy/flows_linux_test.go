package policy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/server"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/conntrack"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// flowLab is a node with four pods, each a network namespace, an aggregator that lists
// conntrack entries, and a frontend on manifests. Port 80 of serviceOf leads to pod 2 or 3.
type flowLab struct {
	*Frontend
	t    *testing.T
	node *nfttest.NS
	pods [5]*nfttest.NS
	dir  string
	// answerTime is how long answers may be on their way.
	answerTime time.Duration
}

const flowPort = 8080

func flowAddr(family, i int) netip.Addr {
	return netip.MustParseAddr([]string{fmt.Sprintf("10.244.%d.2", i), fmt.Sprintf("fd00:10:244:%d::2", i)}[family])
}

func serviceOf(family int) netip.AddrPort {
	return netip.AddrPortFrom([]netip.Addr{netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("fd00:10:96::1")}[family], 80)
}

// onlyFromWeb lets the pods app=web alone reach the pods app=db.
const onlyFromWeb = `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: db, namespace: shop}
spec:
  podSelector: {matchLabels: {app: db}}
  ingress: [{from: [{podSelector: {matchLabels: {app: web}}}]}]
`

func newFlowLab(t *testing.T, answerTime time.Duration) *flowLab {
	t.Helper()
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	l := &flowLab{t: t, node: nfttest.New(t), dir: t.TempDir(), answerTime: answerTime}
	for i := 1; i < len(l.pods); i++ {
		l.pods[i] = nfttest.New(t)
		l.sysctl(l.pods[i], "net/ipv6/conf/all/accept_dad=0", "net/ipv6/conf/default/accept_dad=0")
	}
	l.sysctl(l.node, "net/ipv4/ip_forward=1", "net/ipv6/conf/all/forwarding=1", "net/ipv6/conf/all/accept_dad=0", "net/ipv6/conf/default/accept_dad=0")
	for i := 1; i < len(l.pods); i++ {
		var own, gateway []netip.Prefix
		for f, bits := range []int{24, 64} {
			a := flowAddr(f, i)
			own, gateway = append(own, netip.PrefixFrom(a, bits)), append(gateway, netip.PrefixFrom(a.Prev(), bits))
		}
		nfttest.Veth(t, nfttest.Port{NS: l.node, Name: fmt.Sprint("pod", i), Addrs: gateway}, nfttest.Port{NS: l.pods[i], Name: "eth0", Addrs: own})
		l.pods[i].Route(t, netip.MustParsePrefix("0.0.0.0/0"), gateway[0].Addr())
		l.pods[i].Route(t, netip.MustParsePrefix("::/0"), gateway[1].Addr())
		l.echo(i)
	}
	for f, family := range []string{"ip", "ip6"} {
		l.node.Nft(t, fmt.Sprintf(`table %s nat {
			chain pre {
				type nat hook prerouting priority dstnat
				%s daddr %s udp dport 80 dnat to numgen inc mod 2 map { 0 : %s, 1 : %s } : %d
			}
		}`, family, family, serviceOf(f).Addr(), flowAddr(f, 2), flowAddr(f, 3), flowPort))
	}
	l.write("policy", onlyFromWeb)
	for i, app := range []string{1: "web", 2: "db", 3: "db", 4: "web"} {
		if app != "" {
			l.pod(i, app)
		}
	}
	l.start()
	return l
}

func (l *flowLab) sysctl(ns *nfttest.NS, settings ...string) {
	l.t.Helper()
	for _, s := range settings {
		path, value, _ := strings.Cut(s, "=")
		if err := ns.Do(func() error { return os.WriteFile("/proc/sys/"+path, []byte(value), 0) }); err != nil {
			l.t.Fatal(err)
		}
	}
}

// pod writes the manifest of pod i with a label.
func (l *flowLab) pod(i int, app string) {
	l.t.Helper()
	l.write(fmt.Sprint("pod", i), fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: pod%d, namespace: shop, uid: uid-%d, labels: {app: %s}}
spec: {nodeName: node-a, containers: [{name: c, image: c}]}
status: {phase: Running, podIPs: [{ip: %s}, {ip: "%s"}]}
`, i, i, app, flowAddr(0, i), flowAddr(1, i)))
}

func (l *flowLab) write(name, text string) {
	l.t.Helper()
	if err := os.WriteFile(filepath.Join(l.dir, name+".yaml"), []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

// start runs the aggregator and the frontend until the test ends.
func (l *flowLab) start() {
	t := l.t
	t.Helper()
	conn, err := kernel.Open(kernel.Config{NetNS: l.node.FD()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	var table *conntrack.Conn
	if err := l.node.Do(func() (err error) { table, err = conntrack.Open(); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = table.Close() })
	agg := aggregatortest.Start(t, aggregatortest.Config{
		Config: aggregator.Config{Kernel: conn, StateDir: t.TempDir(), Rate: rate.Inf},
		Limits: func(c *server.Config) { c.Flows = table },
	})
	l.Frontend, _ = runFrontend(t, l.dir, Config{Socket: agg.Socket}, func(f *Frontend) { f.flows.answerTime = l.answerTime })
	await(t, "the first commit", func() bool { return l.Ready() == nil })
}

// echo makes a pod answer what it gets, over UDP with its number.
func (l *flowLab) echo(i int) {
	t := l.t
	t.Helper()
	var tcp net.Listener
	var udp [2]net.PacketConn
	if err := l.pods[i].Do(func() (err error) {
		for f := range udp {
			if udp[f], err = net.ListenPacket("udp", netip.AddrPortFrom(flowAddr(f, i), flowPort).String()); err != nil {
				return err
			}
		}
		tcp, err = net.Listen("tcp", fmt.Sprintf("[::]:%d", flowPort))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tcp.Close() })
	for _, p := range udp {
		t.Cleanup(func() { _ = p.Close() })
		go func() {
			for b := make([]byte, 64); ; {
				_, from, err := p.ReadFrom(b)
				if err != nil {
					return
				}
				_, _ = p.WriteTo([]byte{byte(i)}, from)
			}
		}()
	}
	go func() {
		for {
			c, err := tcp.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			go func() {
				for b := make([]byte, 64); ; {
					n, err := c.Read(b)
					if err != nil {
						return
					}
					_, _ = c.Write(b[:n])
				}
			}()
		}
	}()
}

// stream is a UDP flow that never pauses.
type stream struct {
	name string
	// answers counts the answers, by is the pod that they came from, several if there were
	// more.
	answers atomic.Int64
	by      atomic.Int32
}

const several = -1

func (l *flowLab) stream(from int, to netip.AddrPort) *stream {
	t := l.t
	t.Helper()
	s := &stream{name: fmt.Sprintf("pod %d to %s", from, to)}
	var c net.Conn
	if err := l.pods[from].Do(func() (err error) { c, err = net.Dial("udp", to.String()); return err }); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_, _ = c.Write([]byte("x"))
			}
		}
	})
	wg.Go(func() {
		for b := make([]byte, 8); ; {
			if _, err := c.Read(b); err != nil {
				if ctx.Err() != nil {
					return
				}
				continue
			}
			s.answers.Add(1)
			if was := s.by.Swap(int32(b[0])); was != 0 && was != int32(b[0]) {
				s.by.Store(several)
			}
		}
	})
	t.Cleanup(func() { cancel(); _ = c.Close(); wg.Wait() })
	await(t, "an answer to "+s.name, func() bool { return s.answers.Load() > 0 })
	return s
}

// dial opens a TCP connection to pod 2 that gives up soon.
func (l *flowLab) dial(from, family int) net.Conn {
	l.t.Helper()
	d := net.Dialer{Timeout: 3 * time.Minute, Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 1000) })
	}}
	var c net.Conn
	if err := l.pods[from].Do(func() (err error) {
		c, err = d.Dial("tcp", netip.AddrPortFrom(flowAddr(family, 2), flowPort).String())
		return err
	}); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = c.Close() })
	return c
}

// answered sends a byte and waits for it.
func answered(c net.Conn) bool {
	_ = c.SetDeadline(time.Now().Add(500 * time.Millisecond))
	b := []byte{1}
	if _, err := c.Write(b); err != nil {
		return false
	}
	_, err := c.Read(b)
	return err == nil
}

// awaitNoRecheck waits until no rule looks the set recheck up, and no address is in it.
func (l *flowLab) awaitNoRecheck(after string) {
	l.t.Helper()
	began := time.Now()
	await(l.t, "the end of the recheck after "+after, func() bool { return len(l.content.Rechecked()) == 0 })
	await(l.t, "the rules without recheck after "+after, func() bool { return !strings.Contains(l.node.ListRuleset(l.t), "@recheck") })
	l.t.Logf("after %s, the recheck ended in %s", after, time.Since(began).Round(10*time.Millisecond))
}

// TestNarrowingWithFlows narrows what a pod may reach while connections are open, in both
// families. What is denied is cut for good, and the recheck ends; what is allowed goes on to
// the same backend.
//
// Policy behaviour: 47, 48.
func TestNarrowingWithFlows(t *testing.T) {
	l := newFlowLab(t, 0)
	l.awaitNoRecheck("the start")
	// Conntrack forgets a TCP connection that is silent soon.
	l.sysctl(l.node, "net/netfilter/nf_conntrack_tcp_timeout_established=3", "net/netfilter/nf_conntrack_tcp_timeout_unacknowledged=3")
	var cut, kept []*stream
	var cutTCP, keptTCP []net.Conn
	for f := range 2 {
		to := netip.AddrPortFrom(flowAddr(f, 2), flowPort)
		cut, kept = append(cut, l.stream(4, to), l.stream(4, serviceOf(f))), append(kept, l.stream(1, to), l.stream(1, serviceOf(f)))
		cutTCP, keptTCP = append(cutTCP, l.dial(4, f)), append(keptTCP, l.dial(1, f))
	}
	stopped := make(chan struct{})
	var wg sync.WaitGroup
	for _, c := range keptTCP {
		wg.Go(func() {
			for {
				select {
				case <-stopped:
					return
				case <-time.After(20 * time.Millisecond):
				}
				if !answered(c) {
					t.Errorf("%s to %s: no answer, but it is allowed", c.LocalAddr(), c.RemoteAddr())
					return
				}
			}
		})
	}
	for _, c := range cutTCP {
		if !answered(c) {
			t.Fatalf("%s: no answer before", c.RemoteAddr())
		}
	}
	l.pod(4, "other")
	await(t, "the recheck", func() bool { return len(l.content.Rechecked()) > 0 })
	await(t, "the commit", func() bool { return strings.Contains(l.node.ListRuleset(t), "@recheck") })
	before := make(map[*stream]int64)
	for _, s := range append(cut, kept...) {
		before[s] = s.answers.Load()
	}
	for _, c := range cutTCP {
		if answered(c) {
			t.Errorf("%s: answered after the narrowing", c.RemoteAddr())
		}
	}
	if len(l.content.Rechecked()) == 0 {
		t.Error("the recheck ended while TCP connections were open")
	}
	l.awaitNoRecheck("the end of TCP connections")
	for _, c := range cutTCP {
		if answered(c) {
			t.Errorf("%s: answered after the recheck", c.RemoteAddr())
		}
	}
	if n := testutil.ToFloat64(l.flows.metrics.deleted); n < float64(len(cut)) {
		t.Errorf("%v connections were deleted, want the %d that never pause", n, len(cut))
	}
	for _, s := range cut {
		// One answer may have been on its way.
		if n := s.answers.Load() - before[s]; n > 1 {
			t.Errorf("%s: %d answers after the narrowing", s.name, n)
		}
	}
	for _, s := range kept {
		if n := s.answers.Load() - before[s]; n < 100 || s.by.Load() == several {
			t.Errorf("%s: %d answers after the narrowing, from pod %d", s.name, n, s.by.Load())
		}
	}
	close(stopped)
	wg.Wait()

	l.pod(9, "db")
	await(t, "the recheck of a new pod", func() bool { return len(l.content.Rechecked()) > 0 })
	l.awaitNoRecheck("a new pod")
}

// TestLateAnswer has a pod that answers a question of a connection that is denied by then,
// after weft has listed the connections. The answer must not open a connection in the other
// direction, of which further questions are the replies.
//
// Policy behaviour: 47.
func TestLateAnswer(t *testing.T) {
	l := newFlowLab(t, answerTime)
	l.awaitNoRecheck("the start")
	var clients, servers []*net.UDPConn
	var asked []netip.AddrPort
	for f := range 2 {
		at := net.UDPAddrFromAddrPort(netip.AddrPortFrom(flowAddr(f, 2), 9090))
		var server, client *net.UDPConn
		if err := errors.Join(
			l.pods[2].Do(func() (err error) { server, err = net.ListenUDP("udp", at); return err }),
			l.pods[4].Do(func() (err error) { client, err = net.DialUDP("udp", nil, at); return err })); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = server.Close(), client.Close() })
		clients, servers = append(clients, client), append(servers, server)
		// An answer makes the connection one that conntrack takes for established.
		for range 3 {
			asked = append(asked[:f], exchange(t, client, server))
		}
	}
	l.pod(4, "other")
	await(t, "the commit", func() bool { return strings.Contains(l.node.ListRuleset(t), "@recheck") })
	judged := testutil.ToFloat64(l.flows.metrics.judged)
	await(t, "a listing", func() bool { return testutil.ToFloat64(l.flows.metrics.judged) > judged })
	for f, s := range servers {
		if _, err := s.WriteToUDPAddrPort([]byte("late"), asked[f]); err != nil {
			t.Fatal(err)
		}
	}
	for f, c := range clients {
		for range 20 {
			_, _ = c.Write([]byte("again"))
		}
		_ = servers[f].SetReadDeadline(time.Now().Add(300 * time.Millisecond))
		if n, from, err := servers[f].ReadFromUDPAddrPort(make([]byte, 16)); err == nil {
			t.Errorf("%d bytes from %s after a late answer, but they are denied", n, from)
		}
	}
	if len(l.content.Rechecked()) == 0 {
		t.Error("the recheck ended while answers may be on their way")
	}
}

// exchange sends a question and its answer, and returns the client's address.
func exchange(t *testing.T, client, server *net.UDPConn) netip.AddrPort {
	t.Helper()
	b := make([]byte, 16)
	_, _ = client.Write([]byte("question"))
	_ = server.SetReadDeadline(time.Now().Add(3 * time.Minute))
	_, from, err := server.ReadFromUDPAddrPort(b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := server.WriteToUDPAddrPort([]byte("answer"), from); err != nil {
		t.Fatal(err)
	}
	_ = client.SetReadDeadline(time.Now().Add(3 * time.Minute))
	if _, err := client.Read(b); err != nil {
		t.Fatal(err)
	}
	return from
}
