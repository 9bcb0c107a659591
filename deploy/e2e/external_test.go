package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// externalIPs: external IPs lead to the Service's pods from every source, whether or not a node has
// them. Of two Services with the same IP the older wins.
//
// Behaviour: 9, 32, 33, 37.
func externalIPs(t *testing.T, e *env) {
	addrs := []netip.Addr{netip.MustParseAddr("203.0.113.10"), netip.MustParseAddr("2001:db8::10")}
	claim := func(s *corev1.Service) {
		s.Spec.ExternalIPs = []string{addrs[0].String(), addrs[1].String()}
	}
	s := e.webService(t, "web", claim)
	s.endpoints(t, "a", e.web...)
	for _, addr := range addrs {
		for _, network := range []string{"tcp", "udp"} {
			to := netip.AddrPortFrom(addr, 80)
			for _, from := range e.everyone() {
				e.spread(t, from, network, to, e.web...)
				if got := e.client(t, from, network, to); !e.isNode(got) {
					t.Errorf("%s %s from %s: seen as %s, want a node's address", network, to, from.Name(), got)
				}
			}
		}
	}
	older := s.CreationTimestamp.Time
	within(t, e.ctx, settled, "a second has passed: creation times have no more", func() error {
		if time.Since(older) < 1100*time.Millisecond {
			return errors.New("not yet")
		}
		return nil
	})
	younger := e.webService(t, "another", claim)
	younger.endpoints(t, "a", e.web[0])
	for _, c := range e.clients {
		e.spread(t, c, "tcp", younger.vip(false, 80), e.web[0])
		e.spread(t, c, "tcp", netip.AddrPortFrom(addrs[0], 80), e.web...)
	}
	s.endpoints(t, "a")
	e.refused(t, e.clients[0], "tcp", netip.AddrPortFrom(addrs[0], 80))
	e.refused(t, e.lab.Outside, "udp", netip.AddrPortFrom(addrs[1], 80))
	s.delete(t)
	for _, c := range e.clients {
		e.spread(t, c, "tcp", netip.AddrPortFrom(addrs[0], 80), e.web[0])
	}
	younger.update(t, func(s *corev1.Service) { s.Spec.ExternalIPs = nil })
	e.noAddress(t, addrs[0])
	e.noAddress(t, addrs[1])
}

// one client of each kind
func (e *env) everyone() []asker {
	return []asker{e.clients[0], e.clients[2], e.lab.Nodes[1], e.lab.Outside}
}

// externalUDPBefore: a client that sends to an address before a Service has it, and never stops,
// reaches the Service: its flow ends.
//
// Behaviour: 109, 113.
func externalUDPBefore(t *testing.T, e *env) {
	addr := netip.MustParseAddr("203.0.113.20")
	s := e.webService(t, "web", nil)
	s.endpoints(t, "a", e.web...)
	e.spread(t, e.clients[0], "udp", s.vip(false, 80), e.web...)
	flow := e.flow(t, e.clients[0], netip.AddrPortFrom(addr, 80), 40500)
	keep := e.flow(t, e.clients[0], s.vip(false, 80), 40501)
	first, err := e.askUDP(keep.Conversation)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := e.askUDP(flow.Conversation); err == nil {
		t.Fatalf("%s answered on an address of no Service", a.Pod)
	}
	s.update(t, func(s *corev1.Service) { s.Spec.ExternalIPs = []string{addr.String()} })
	within(t, e.ctx, settled, flow.what+" is answered", func() error {
		_, err := e.askUDP(flow.Conversation)
		return err
	})
	if again, err := e.askUDP(keep.Conversation); err != nil || again.Pod != first.Pod {
		t.Errorf("a flow to the ClusterIP went to %s and then to %q, %v", first.Pod, again.Pod, err)
	}
}

// loadBalancerVIP: load balancer addresses are short-cut, unless the ipMode forbids it.
//
// Behaviour: 38, 39, 40.
func loadBalancerVIP(t *testing.T, e *env) {
	s := e.webService(t, "web", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeLoadBalancer })
	s.endpoints(t, "a", e.web...)
	vip, proxy := corev1.LoadBalancerIPModeVIP, corev1.LoadBalancerIPModeProxy
	second, v6 := netip.MustParseAddr("203.0.113.31"), netip.MustParseAddr("2001:db8::31")
	// The real load balancer is a separate machine that answers itself.
	real := netip.MustParseAddrPort("203.0.113.39:8080")
	balancer := e.stranger(t, 2, real)
	s.update(t, func(s *corev1.Service) {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "odd", Protocol: corev1.ProtocolTCP, Port: int32(real.Port())})
	})
	s.ingress(t,
		corev1.LoadBalancerIngress{IP: "203.0.113.30"},
		corev1.LoadBalancerIngress{IP: second.String(), IPMode: &vip},
		corev1.LoadBalancerIngress{IP: v6.String(), IPMode: &vip},
		corev1.LoadBalancerIngress{IP: real.Addr().String(), IPMode: &proxy},
		corev1.LoadBalancerIngress{Hostname: "lb.example.org"})
	for _, addr := range []netip.Addr{netip.MustParseAddr("203.0.113.30"), second, v6} {
		for _, from := range e.everyone() {
			e.spread(t, from, "tcp", netip.AddrPortFrom(addr, 80), e.web...)
			e.spread(t, from, "udp", netip.AddrPortFrom(addr, 80), e.web...)
		}
	}
	e.spread(t, e.clients[0], "tcp", real, balancer)
	e.noAddress(t, real.Addr())
	s.ingress(t, corev1.LoadBalancerIngress{IP: second.String()})
	e.noAddress(t, v6)
	e.spread(t, e.clients[0], "tcp", netip.AddrPortFrom(second, 80), e.web...)
}

// loadBalancerLocal: load balancer addresses follow the external policy as NodePorts do.
//
// Behaviour: 49, 50, 51.
func loadBalancerLocal(t *testing.T, e *env) {
	s := e.webService(t, "web", func(s *corev1.Service) {
		s.Spec.Type = corev1.ServiceTypeLoadBalancer
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	})
	s.endpoints(t, "a", e.uneven()...)
	addr := netip.MustParseAddr("203.0.113.35")
	to := netip.AddrPortFrom(addr, 80)
	s.ingress(t, corev1.LoadBalancerIngress{IP: addr.String()})
	for _, c := range e.clients {
		e.spread(t, c, "tcp", to, e.uneven()...)
		if got := e.client(t, c, "tcp", to); got != c.Addresses.V4 {
			t.Errorf("from %s: seen as %s", c.Name(), got)
		}
	}
	e.spread(t, e.lab.Outside, "tcp", to, e.onNode(0)...)
	if got := e.client(t, e.lab.Outside, "tcp", to); got != e.lab.Outside.Addresses.V4 {
		t.Errorf("from outside: seen as %s", got)
	}
	// Outside routes the address to a node without pods of the Service.
	whole := netip.PrefixFrom(addr, addr.BitLen())
	if err := e.lab.RouteOutside(whole, e.lab.Nodes[2]); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.lab.UnrouteOutside(whole); err != nil {
			t.Error(err)
		}
	}()
	e.dropped(t, question{e.lab.Outside, "tcp", to}, question{e.lab.Outside, "udp", to})
}

// sourceRanges: only clients in the ranges reach the load balancer's addresses, also pods and nodes;
// other addresses and existing connections stay open.
//
// Behaviour: 26, 34, 42, 43, 45, 47, 48.
func sourceRanges(t *testing.T, e *env) {
	inside, other := e.clients[0], e.clients[1]
	s := e.webService(t, "web", func(s *corev1.Service) {
		s.Spec.Type = corev1.ServiceTypeLoadBalancer
		s.Spec.LoadBalancerSourceRanges = []string{inside.Addresses.V4.String() + "/32"}
		s.Spec.ExternalIPs = []string{"203.0.113.41"}
	})
	s.endpoints(t, "a", e.web...)
	s.ingress(t, corev1.LoadBalancerIngress{IP: "203.0.113.40"}, corev1.LoadBalancerIngress{IP: "2001:db8::40"})
	to, to6 := netip.MustParseAddrPort("203.0.113.40:80"), netip.MustParseAddrPort("[2001:db8::40]:80")
	e.spread(t, inside, "tcp", to, e.web...)
	e.spread(t, inside, "udp", to, e.web...)
	e.dropped(t, question{other, "tcp", to}, question{other, "udp", to}, question{e.lab.Outside, "tcp", to})
	e.silent(t, e.lab.Nodes[1], "tcp", to)
	// Ranges of one family do not limit the other.
	e.spread(t, other, "tcp", to6, e.web...)
	for _, open := range []netip.AddrPort{s.vip(false, 80), netip.MustParseAddrPort("203.0.113.41:80"), e.nodePortOf(1, s, "http")} {
		e.spread(t, other, "tcp", open, e.web...)
	}
	e.spread(t, e.lab.Outside, "tcp", e.nodePortOf(2, s, "http"), e.web...)

	conn, err := inside.Open(e.ctx, "tcp", to, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s.update(t, func(s *corev1.Service) {
		s.Spec.LoadBalancerSourceRanges = []string{other.Addresses.V4.String() + "/32", "192.168.200.0/24", "2001:db8:ffff::/48"}
	})
	e.spread(t, other, "tcp", to, e.web...)
	e.spread(t, e.lab.Outside, "tcp", to, e.web...)
	e.spread(t, e.lab.Nodes[1], "tcp", to, e.web...)
	e.dropped(t, question{inside, "tcp", to}, question{other, "tcp", to6})
	if _, err := conn.Ask(e.ctx, "still there"); err != nil {
		t.Errorf("connection made before the ranges changed: %v", err)
	}
	s.update(t, func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = []string{"10.9.0.0/16", "0.0.0.0/0"} })
	e.spread(t, inside, "tcp", to, e.web...)
	e.spread(t, inside, "tcp", to6, e.web...)
}

type health struct {
	Service             struct{ Namespace, Name string }
	LocalEndpoints      int
	ServiceProxyHealthy bool
}

// healthChecks: each node reports the number of the Service's pods to load balancers, 0 when they
// terminate.
//
// Behaviour: 117, 118, 119, 120, 121, 123.
func healthChecks(t *testing.T, e *env) {
	s := e.webService(t, "web", func(s *corev1.Service) {
		selecting("web")(s)
		s.Spec.Type = corev1.ServiceTypeLoadBalancer
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	})
	run := e.runApp(t, "web", e.uneven()...)
	port := uint16(s.Spec.HealthCheckNodePort)
	if port == 0 {
		t.Fatal("the API server gave the Service no healthCheckNodePort")
	}
	for i, count := range []int{2, 1, 0} {
		for _, addr := range e.lab.Nodes[i].Addresses.All() {
			e.healthIs(t, s, netip.AddrPortFrom(addr, port), count)
		}
	}
	if err := run[2].terminate(e.ctx, time.Hour); err != nil {
		t.Fatal(err)
	}
	e.healthIs(t, s, netip.AddrPortFrom(e.lab.Nodes[1].Addresses.V4, port), 0)
	e.healthIs(t, s, netip.AddrPortFrom(e.lab.Nodes[0].Addresses.V4, port), 2)
	late := e.runApp(t, "web", e.web[2])
	e.healthIs(t, s, netip.AddrPortFrom(e.lab.Nodes[2].Addresses.V4, port), 1)
	if err := late[0].report(e.ctx, false); err != nil {
		t.Fatal(err)
	}
	e.healthIs(t, s, netip.AddrPortFrom(e.lab.Nodes[2].Addresses.V4, port), 0)

	// Another port is another server, which ends with the Service.
	s.delete(t)
	second := e.webService(t, "web", func(s *corev1.Service) {
		selecting("web")(s)
		s.Spec.Type = corev1.ServiceTypeLoadBalancer
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		s.Spec.HealthCheckNodePort = 31999
	})
	to := netip.AddrPortFrom(e.lab.Nodes[0].Addresses.V4, 31999)
	e.healthIs(t, second, to, 2)
	e.noServer(t, netip.AddrPortFrom(e.lab.Nodes[0].Addresses.V4, port))
	second.delete(t)
	e.noServer(t, to)
}

// healthIs waits until a node reports count pods to outside.
func (e *env) healthIs(t *testing.T, s *service, at netip.AddrPort, count int) {
	t.Helper()
	status := http.StatusOK
	if count == 0 {
		status = http.StatusServiceUnavailable
	}
	within(t, e.ctx, settled, fmt.Sprintf("%s says %d", at, count), func() error {
		res, body, err := fetch(e, e.lab.Outside, fmt.Sprintf("http://%s/any/path", at))
		if err != nil {
			return err
		}
		var got health
		if err := json.Unmarshal(body, &got); err != nil {
			return fmt.Errorf("read %q: %w", body, err)
		}
		want := health{LocalEndpoints: count, ServiceProxyHealthy: true}
		want.Service.Namespace, want.Service.Name = s.Namespace, s.Name
		if got != want || res.StatusCode != status {
			return fmt.Errorf("%d %+v, want %d %+v", res.StatusCode, got, status, want)
		}
		for header, value := range map[string]string{
			"Content-Type": "application/json", "X-Content-Type-Options": "nosniff", "X-Load-Balancing-Endpoint-Weight": fmt.Sprint(count),
		} {
			if got := res.Header.Get(header); !strings.HasPrefix(got, value) {
				return fmt.Errorf("%s: %q, want %q", header, got, value)
			}
		}
		return nil
	})
}

func (e *env) noServer(t *testing.T, at netip.AddrPort) {
	t.Helper()
	within(t, e.ctx, settled, at.String()+" is closed", func() error {
		_, _, err := fetch(e, e.lab.Outside, fmt.Sprintf("http://%s/", at))
		switch {
		case err == nil:
			return errors.New("it answered")
		case errors.Is(err, syscall.ECONNREFUSED):
			return nil
		}
		return err
	})
}

// fetch uses a new connection.
func fetch(e *env, from *lab.Host, url string) (*http.Response, []byte, error) {
	c := http.Client{Transport: &http.Transport{DialContext: from.Dial, DisableKeepAlives: true}, Timeout: answerTime}
	req, err := http.NewRequestWithContext(e.ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, nil, err
	}
	res, err := c.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res, body, err
}
