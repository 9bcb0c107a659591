package ipvs_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/weft-proxy/weft/cmd/weft/takeover"
	"github.com/weft-proxy/weft/cmd/weft/takeover/ipvs"
	"github.com/weft-proxy/weft/frontends/testing/apitest"
	"github.com/weft-proxy/weft/nft/testing/nfttest/netns"
)

// kubeProxyVariable names the binary of kube-proxy, and weftVariable weft's. deploy/compat/ipvs sets them, in a
// virtual machine: the test needs kernel modules and changes the network namespace of its process.
const (
	kubeProxyVariable = "WEFT_TEST_KUBE_PROXY"
	weftVariable      = "WEFT_TEST_WEFT"
)

const (
	vip = "10.96.0.10"
	// IPVS ends connections to an endpoint that comes back, so open ones go to a Service whose endpoints stay.
	stableVIP = "10.96.0.11"
	// the backends listen on the ports of pods
	webPort, podPort, dnsPort = 80, 8080, 53
	patience                  = 4 * time.Minute
)

// story is a node with a client pod and three backend pods.
type story struct {
	t      *testing.T
	api    *apitest.Server
	dir    string
	client *netns.Namespace

	mu sync.Mutex
	// removed has the time since when a backend is not an endpoint; the zero time means that it is.
	removed [backends]time.Time
	phase   *counts
}

const backends = 3

// counts are of a phase. A connection is late to a backend that was removed a second before, and dead after
// staleAfter: an emulated machine can stand still for seconds.
type counts struct{ tcp, udp, failed, late, dead atomic.Int64 }

const staleAfter = 5 * time.Second

// TestStory takes a node from kube-proxy in mode ipvs to weft and back, under new connections and changing
// endpoints. No connection fails, open ones go on, and nothing of kube-proxy is left.
func TestStory(t *testing.T) {
	if os.Getenv(kubeProxyVariable) == "" {
		t.Skipf("%s is not set: run the test of deploy/compat/ipvs", kubeProxyVariable)
	}
	s := newStory(t)
	peer := s.start(kubeProxyVariable, "kube-proxy", "--proxy-mode=ipvs", "--ipvs-min-sync-period=100ms", "--metrics-bind-address=127.0.0.1:10249")
	s.await("kube-proxy serves", func() error { return s.tcp(new(net.Dialer)) })
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	t.Cleanup(func() { stop(); load.Wait() })
	s.changeEndpoints(ctx, &load)
	s.load(ctx, &load)
	s.measure("kube-proxy", false)
	open := s.keepOpen(10)

	weft := s.start(weftVariable, "run", "--takeover", "--handover", "--takeover-drain=1h", "--metrics-bind-address=127.0.0.1:10249", "--socket", filepath.Join(s.dir, "weft.sock"), "--state-dir", filepath.Join(s.dir, "state"))
	s.await("weft's rules are in force", s.logged("weft", "until it has ended"))
	// UDP entries of kube-proxy's removed backends go a moment after weft's rules are in force.
	s.measure("beside", false)
	peer.end()
	s.await("weft waits for connections", s.logged("weft", takeover.ErrWaiting.Error()))
	s.measure("waiting", true)
	if l, err := ipvs.Find("/proc"); err != nil || !slices.ContainsFunc(l.Servers, func(s ipvs.Server) bool { return s.Name == "TCP 10.96.0.11:80" }) || len(l.Addresses) == 0 || len(l.Sets) == 0 {
		t.Errorf("beside open connections: %v, %v", l, err)
	}
	if n := open.close(); n > 0 {
		t.Errorf("%d open connections failed while weft took over", n)
	}
	s.await("nothing of kube-proxy is left", func() error {
		what, _, err := takeover.Find(t.Context(), takeover.Config{})
		if err == nil && len(what) > 0 {
			err = fmt.Errorf("left: %s", strings.Join(what, "; "))
		}
		return err
	})
	s.measure("weft", true)

	open = s.keepOpen(10)
	s.node("")
	peer = s.start(kubeProxyVariable, "kube-proxy", "--proxy-mode=ipvs", "--ipvs-min-sync-period=100ms", "--metrics-bind-address=127.0.0.1:10249")
	weft.signal()
	s.measure("handover", true)
	s.await("weft ends", weft.ended)
	s.measure("kube-proxy again", false)
	if n := open.close(); n > 0 {
		t.Errorf("%d open connections failed on the way back", n)
	}
	if out, err := exec.Command("nft", "list", "tables").Output(); err != nil || strings.Contains(string(out), "weft") {
		t.Errorf("tables after the way back: %s, %v", out, err)
	}
	peer.end()
}

func newStory(t *testing.T) *story {
	s := &story{t: t, dir: t.TempDir(), phase: new(counts)}
	s.client = s.pod(0)
	// weft needs a route to the ClusterIPs.
	if out, err := exec.Command("ip", "route", "add", "default", "via", "10.244.0.2").CombinedOutput(); err != nil {
		t.Fatalf("add a route: %v: %s", err, out)
	}
	for i := range backends {
		s.serve(i, s.pod(i+1))
	}
	api, err := apitest.Start(net.Listen, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Stop)
	s.api = api
	s.node(takeover.Weft)
	tcp, udp := corev1.ProtocolTCP, corev1.ProtocolUDP
	api.Set(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, ClusterIP: vip, ClusterIPs: []string{vip}, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
		Ports: []corev1.ServicePort{{Name: "web", Protocol: tcp, Port: webPort, TargetPort: intstr.FromInt32(podPort)}, {Name: "dns", Protocol: udp, Port: dnsPort, TargetPort: intstr.FromInt32(podPort)}},
	}})
	s.endpoints(0, 1, 2)
	port, ready := int32(podPort), true
	api.Set(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "stable"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, ClusterIP: stableVIP, ClusterIPs: []string{stableVIP}, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
		Ports: []corev1.ServicePort{{Protocol: tcp, Port: webPort, TargetPort: intstr.FromInt32(podPort)}},
	}}, &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "stable-1", Labels: map[string]string{discoveryv1.LabelServiceName: "stable"}}, AddressType: discoveryv1.AddressTypeIPv4,
		Ports:     []discoveryv1.EndpointPort{{Name: new(string), Protocol: &tcp, Port: &port}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.244.1.2"}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
	})
	config := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: %q}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n", api.URL())
	if err := os.WriteFile(filepath.Join(s.dir, "kubeconfig"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *story) node(label string) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.244.0.1"}}}}
	if label != "" {
		n.Labels = map[string]string{takeover.Label: label}
	}
	s.api.Set(n)
}

// pod makes a namespace with the address 10.244.I.2, behind the node.
func (s *story) pod(i int) *netns.Namespace {
	s.t.Helper()
	ns, err := netns.New(fmt.Sprintf("pod%d", i))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = ns.Close() })
	own := fmt.Sprintf("pod%d", i)
	up := func(name, addr string) error {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		a, err := netlink.ParseAddr(addr)
		if err != nil {
			return err
		}
		return errors.Join(netlink.AddrAdd(link, a), netlink.LinkSetUp(link))
	}
	err = netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: own}, PeerName: "eth0", PeerNamespace: netlink.NsFd(ns.FD())})
	if err == nil {
		err = up(own, fmt.Sprintf("10.244.%d.1/24", i))
	}
	if err == nil {
		err = ns.Do(func() error { return up("eth0", fmt.Sprintf("10.244.%d.2/24", i)) })
	}
	if err == nil {
		err = ns.Route(netip.MustParsePrefix("0.0.0.0/0"), "eth0", netip.MustParseAddr(fmt.Sprintf("10.244.%d.1", i)))
	}
	if err != nil {
		s.t.Fatalf("make pod %d: %v", i, err)
	}
	return ns
}

// serve answers with the backend's number.
func (s *story) serve(i int, ns *netns.Namespace) {
	var l net.Listener
	var p net.PacketConn
	if err := ns.Do(func() (err error) {
		if l, err = net.Listen("tcp", fmt.Sprintf(":%d", podPort)); err == nil {
			p, err = net.ListenPacket("udp", fmt.Sprintf(":%d", podPort))
		}
		return err
	}); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _, _ = l.Close(), p.Close() })
	answer := fmt.Appendf(nil, "%d\n", i)
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			go func() {
				defer c.Close()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					if _, err := c.Write(answer); err != nil {
						return
					}
				}
			}()
		}
	}()
	go func() {
		b := make([]byte, 64)
		for _, from, err := p.ReadFrom(b); err == nil; _, from, err = p.ReadFrom(b) {
			_, _ = p.WriteTo(answer, from)
		}
	}()
}

func (s *story) endpoints(in ...int) {
	tcp, udp, port, ready := corev1.ProtocolTCP, corev1.ProtocolUDP, int32(podPort), true
	web, dns := "web", "dns"
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}}, AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{{Name: &web, Protocol: &tcp, Port: &port}, {Name: &dns, Protocol: &udp, Port: &port}},
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for i := range s.removed {
		if s.removed[i].IsZero() {
			s.removed[i] = now
		}
	}
	for _, i := range in {
		s.removed[i] = time.Time{}
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.244.%d.2", i+1)}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}})
	}
	s.api.Set(slice)
}

// changeEndpoints leaves out another backend twice a second.
func (s *story) changeEndpoints(ctx context.Context, g *sync.WaitGroup) {
	g.Go(func() {
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				// Each backend is out for several changes, so that a late one is noticed.
				out := i / 20 % backends
				s.endpoints((out+1+i%2)%backends, (out+2-i%2)%backends)
			}
		}
	})
}

// count notes the result of a new connection begun at a time.
func (s *story) count(n *atomic.Int64, c *counts, begun time.Time, backend int, err error) {
	n.Add(1)
	if err != nil {
		if c.failed.Add(1) <= 5 {
			s.t.Logf("failed: %v", err)
		}
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if gone := s.removed[backend]; !gone.IsZero() && begun.Sub(gone) > time.Second {
		c.late.Add(1)
		if begun.Sub(gone) > staleAfter {
			c.dead.Add(1)
		}
	}
}

func (s *story) load(ctx context.Context, g *sync.WaitGroup) {
	const workers = 4
	for range workers {
		g.Go(func() {
			_ = s.client.Do(func() error {
				for tick := time.NewTicker(16 * time.Millisecond); ctx.Err() == nil; <-tick.C {
					s.mu.Lock()
					c := s.phase
					s.mu.Unlock()
					begun := time.Now()
					backend, err := exchange(&net.Dialer{Timeout: 10 * time.Second}, "tcp", webPort)
					s.count(&c.tcp, c, begun, backend, err)
					begun = time.Now()
					backend, err = exchange(&net.Dialer{Timeout: 10 * time.Second}, "udp", dnsPort)
					s.count(&c.udp, c, begun, backend, err)
				}
				return nil
			})
		})
	}
}

func (s *story) tcp(d *net.Dialer) error {
	_, err := exchange(d, "tcp", webPort)
	return err
}

// exchange makes a connection to the Service, and returns the backend that answers.
func exchange(d *net.Dialer, network string, port int) (backend int, err error) {
	c, err := d.Dial(network, net.JoinHostPort(vip, strconv.Itoa(port)))
	if err != nil {
		return 0, err
	}
	defer c.Close()
	return ask(c, 10*time.Second)
}

func ask(c net.Conn, within time.Duration) (backend int, err error) {
	if err := c.SetDeadline(time.Now().Add(within)); err != nil {
		return 0, err
	}
	if _, err := c.Write([]byte("?\n")); err != nil {
		return 0, err
	}
	b := make([]byte, 2)
	if _, err := c.Read(b); err != nil {
		return 0, err
	}
	if b[0] < '0' || b[0] >= '0'+backends {
		return 0, fmt.Errorf("answer %q", b)
	}
	return int(b[0] - '0'), nil
}

// measure counts the connections of a phase. After takeover none may fail or meet a removed backend.
func (s *story) measure(phase string, strict bool) {
	s.t.Helper()
	const enough = 1500
	c := new(counts)
	s.mu.Lock()
	s.phase = c
	s.mu.Unlock()
	start := time.Now()
	s.await(phase+" has connections", func() error {
		if n := c.tcp.Load(); n < enough {
			return fmt.Errorf("%d connections", n)
		}
		return nil
	})
	n := c.tcp.Load() + c.udp.Load()
	s.t.Logf("%s: %d new TCP and %d new UDP connections (%.0f a second), %d failed, %d to a backend removed 1 s before, %d after %v",
		phase, c.tcp.Load(), c.udp.Load(), float64(n)/time.Since(start).Seconds(), c.failed.Load(), c.late.Load(), c.dead.Load(), staleAfter)
	if c.failed.Load() > 0 || strict && c.dead.Load() > 0 {
		s.t.Errorf("%s: %d failed, %d to a removed backend", phase, c.failed.Load(), c.dead.Load())
	}
}

// openConnections are used until close.
type openConnections struct {
	done   chan struct{}
	g      sync.WaitGroup
	failed atomic.Int64
}

// keepOpen makes connections of the client, and one of a process of the node.
func (s *story) keepOpen(n int) *openConnections {
	s.t.Helper()
	o := &openConnections{done: make(chan struct{})}
	for i := range n + 1 {
		var c net.Conn
		dial := func() (err error) {
			c, err = net.Dial("tcp", net.JoinHostPort(stableVIP, strconv.Itoa(webPort)))
			return err
		}
		var err error
		if i == n {
			err = dial()
		} else {
			err = s.client.Do(dial)
		}
		if err != nil {
			s.t.Fatal(err)
		}
		o.g.Go(func() {
			defer c.Close()
			for tick := time.NewTicker(200 * time.Millisecond); ; {
				if _, err := ask(c, 10*time.Second); err != nil {
					o.failed.Add(1)
					s.t.Logf("open connection %d from %s: %v", i, c.LocalAddr(), err)
					return
				}
				select {
				case <-o.done:
					return
				case <-tick.C:
				}
			}
		})
	}
	return o
}

// close returns the number of connections that failed.
func (o *openConnections) close() int64 {
	close(o.done)
	o.g.Wait()
	return o.failed.Load()
}

func (s *story) logged(name, text string) func() error {
	return func() error {
		b, err := os.ReadFile(filepath.Join(s.dir, name+".log"))
		if err == nil && !strings.Contains(string(b), text) {
			err = fmt.Errorf("no %q in the log of %s", text, name)
		}
		return err
	}
}

func (s *story) await(what string, f func() error) {
	s.t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for err := f(); err != nil; err = f() {
		select {
		case <-tick.C:
		case <-late:
			s.t.Fatalf("%s: after %v: %v", what, patience, err)
		}
	}
}
