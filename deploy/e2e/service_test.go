package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weft-proxy/weft/deploy/e2e/cluster"
)

// serviceClusterIP: pods of both nodes reach all endpoints, on both ports, protocols and families, with their
// own source address.
//
// Behaviour: 1, 4, 5, 6.
func serviceClusterIP(t *testing.T, e *env) {
	s := e.webService(t, "web", nil)
	s.endpoints(t, "a", e.web...)
	for _, c := range e.clients {
		for family, own := range c.Addresses.All() {
			for _, port := range []uint16{80, 90} {
				for _, network := range []string{"tcp", "udp"} {
					to := s.vip(family == 1, port)
					e.spread(t, c, network, to, e.web...)
					a, err := c.Ask(e.ctx, network, to, answerTime)
					if err != nil {
						t.Fatal(err)
					}
					if want := uint16(targetPorts[int32(port)]); a.Port != want {
						t.Errorf("%s %s: answered on port %d, want %d", network, to, a.Port, want)
					}
					if a.Client.Addr() != own {
						t.Errorf("%s %s from %s: seen as %s, want %s", network, to, c.Name(), a.Client.Addr(), own)
					}
				}
			}
		}
	}
}

// serviceFromHost: a node's process, and a host outside with a route, reach a ClusterIP; the source
// address is a node's.
//
// Behaviour: 2, 3.
func serviceFromHost(t *testing.T, e *env) {
	s := e.webService(t, "web", nil)
	s.endpoints(t, "a", e.web...)
	for _, from := range []asker{e.lab.Nodes[0], e.lab.Nodes[1], e.lab.Outside} {
		for _, v6 := range []bool{false, true} {
			for _, network := range []string{"tcp", "udp"} {
				to := s.vip(v6, 80)
				e.spread(t, from, network, to, e.web...)
				if got := e.client(t, from, network, to); !e.isNode(got) {
					t.Errorf("%s %s from %s: seen as %s, want a node's address", network, to, from.Name(), got)
				}
			}
		}
	}
}

// serviceKubernetes: the Service kubernetes leads from a pod to the API server.
//
// Behaviour: 1.
func serviceKubernetes(t *testing.T, e *env) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(e.cluster.CA())
	vip := cluster.ServiceCIDRs()[0].Addr().Next()
	for _, c := range e.clients {
		within(t, e.ctx, 5*time.Second, "TLS from "+c.Name()+" to the API server's ClusterIP", func() error {
			conn, err := c.Dial(e.ctx, "tcp", netip.AddrPortFrom(vip, 443).String())
			if err != nil {
				return err
			}
			defer conn.Close()
			if err := conn.SetDeadline(time.Now().Add(answerTime)); err != nil {
				return err
			}
			return tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: vip.String()}).HandshakeContext(e.ctx)
		})
	}
}

// serviceSlices: the endpoints are the union of all slices, whose named ports may differ; a slice
// before its Service waits for it.
//
// Behaviour: 5, 70.
func serviceSlices(t *testing.T, e *env) {
	s := e.webService(t, "web", nil)
	s.endpoints(t, "a", e.web[0], e.web[1])
	s.endpoints(t, "b", e.web[2])
	e.spread(t, e.clients[0], "tcp", s.vip(false, 80), e.web[:3]...)

	// The port of the same name has another number on the fourth pod.
	odd := s.slice(discoveryv1.AddressTypeIPv4, "c", e.web[3:])
	for i := range odd.Ports {
		number := int32(9090)
		odd.Ports[i].Port = &number
	}
	s.apply(t, odd)
	e.spread(t, e.clients[0], "tcp", s.vip(false, 80), e.web...)
	within(t, e.ctx, 5*time.Second, "web-4 answers on 9090", func() error {
		a, err := e.clients[0].Ask(e.ctx, "tcp", s.vip(false, 80), answerTime)
		if err == nil && (a.Pod != "web-4" || a.Port != 9090) {
			err = fmt.Errorf("%s answered on %d", a.Pod, a.Port)
		}
		return err
	})

	before := s.slice(discoveryv1.AddressTypeIPv4, "a", e.web[:2])
	before.Name, before.Labels[discoveryv1.LabelServiceName] = "late-a", "late"
	s.apply(t, before)
	late := e.webService(t, "late", nil)
	e.spread(t, e.clients[0], "tcp", late.vip(false, 80), e.web[:2]...)
}

// serviceHeadless: a Service without a ClusterIP has no rules.
//
// Behaviour: 101.
func serviceHeadless(t *testing.T, e *env) {
	e.traceless(t, func(s *corev1.Service) { s.Spec.ClusterIP = headlessAddress })
}

// serviceForeign: a Service with another proxy's label is ignored, from the start or once it gets the
// label.
//
// Behaviour: 102.
func serviceForeign(t *testing.T, e *env) {
	e.traceless(t, func(s *corev1.Service) {
		s.Labels = map[string]string{proxyNameLabel: "other"}
		s.Spec.Type = corev1.ServiceTypeNodePort
	})
	late := e.webService(t, "late", nil)
	late.endpoints(t, "a", e.web...)
	e.spread(t, e.clients[0], "tcp", late.vip(false, 80), e.web...)
	e.relabel(t, "late", proxyNameLabel, "other")
	e.silent(t, e.clients[0], "tcp", late.vip(false, 80))
	e.noTrace(t, late)
}
