package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// lifecyclePorts: ports come, change and go separately; ports outside of the Service refuse, also if
// the other protocol has them.
//
// Behaviour: 5, 6, 7.
func lifecyclePorts(t *testing.T, e *env) {
	s := e.webService(t, "web", func(s *corev1.Service) {
		selecting("web")(s)
		s.Spec.Ports = []corev1.ServicePort{{Name: "a", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromString("http")}}
	})
	e.runApp(t, "web", e.web...)
	c := e.clients[0]
	e.answersOn(t, s, "tcp", 80, 8080)
	e.refused(t, c, "udp", s.vip(false, 80))
	e.refused(t, c, "tcp", s.vip(false, 90))

	s.update(t, func(s *corev1.Service) {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "b", Protocol: corev1.ProtocolUDP, Port: 80, TargetPort: intstr.FromInt32(9090)})
	})
	e.answersOn(t, s, "udp", 80, 9090)
	e.answersOn(t, s, "tcp", 80, 8080)

	s.update(t, func(s *corev1.Service) {
		s.Spec.Ports[0].Port = 90
		s.Spec.Ports[0].TargetPort = intstr.FromString("admin")
	})
	e.answersOn(t, s, "tcp", 90, 9090)
	e.refused(t, c, "tcp", s.vip(false, 80))
	e.answersOn(t, s, "udp", 80, 9090)

	s.update(t, func(s *corev1.Service) { s.Spec.Ports = s.Spec.Ports[:1] })
	e.refused(t, c, "udp", s.vip(false, 80))
	e.answersOn(t, s, "tcp", 90, 9090)
}

func (e *env) answersOn(t *testing.T, s *service, network string, port, target uint16) {
	t.Helper()
	for _, v6 := range []bool{false, true} {
		to := s.vip(v6, port)
		within(t, e.ctx, settled, fmt.Sprintf("%s %s leads to port %d", network, to, target), func() error {
			a, err := e.clients[0].Ask(e.ctx, network, to, answerTime/2)
			if err == nil && a.Port != target {
				err = fmt.Errorf("%s answered on %d", a.Pod, a.Port)
			}
			return err
		})
		e.spread(t, e.clients[1], network, to, e.web...)
	}
}

// lifecycleTypes: a Service goes through all types and back, and keeps no addresses of an earlier type.
//
// Behaviour: 28, 30, 31, 101.
func lifecycleTypes(t *testing.T, e *env) {
	s := e.webService(t, "web", selecting("web"))
	e.runApp(t, "web", e.web...)
	c := e.clients[0]
	e.spread(t, c, "tcp", s.vip(false, 80), e.web...)

	s.update(t, func(s *corev1.Service) {
		s.Spec.Type = corev1.ServiceTypeNodePort
		// One number for both protocols.
		for i := range s.Spec.Ports[:2] {
			s.Spec.Ports[i].NodePort = 30123
		}
	})
	node := e.nodePortOf(2, s, "http")
	e.spread(t, e.lab.Outside, "tcp", node, e.web...)
	e.spread(t, e.lab.Outside, "udp", node, e.web...)
	e.spread(t, c, "tcp", s.vip(false, 80), e.web...)
	e.nobodyListens(t, node.Port())

	s.update(t, func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeLoadBalancer })
	e.spread(t, e.lab.Outside, "tcp", node, e.web...)
	e.spread(t, c, "tcp", s.vip(false, 80), e.web...)

	s.update(t, func(s *corev1.Service) {
		s.Spec.Type = corev1.ServiceTypeClusterIP
		for i := range s.Spec.Ports {
			s.Spec.Ports[i].NodePort = 0
		}
	})
	e.silent(t, e.lab.Outside, "tcp", node)
	e.silent(t, e.lab.Outside, "udp", node)
	e.spread(t, c, "tcp", s.vip(false, 80), e.web...)

	before := *s
	s.update(t, func(s *corev1.Service) {
		s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.org", Ports: s.Spec.Ports}
	})
	for _, v6 := range []bool{false, true} {
		e.silent(t, c, "tcp", before.vip(v6, 80))
		e.silent(t, c, "udp", before.vip(v6, 80))
	}
	e.noTrace(t, &before)

	s.update(t, func(s *corev1.Service) {
		dual := corev1.IPFamilyPolicyRequireDualStack
		s.Spec.Type, s.Spec.ExternalName, s.Spec.IPFamilyPolicy = corev1.ServiceTypeClusterIP, "", &dual
		selecting("web")(s)
	})
	for _, v6 := range []bool{false, true} {
		e.spread(t, c, "tcp", s.vip(v6, 80), e.web...)
		e.spread(t, c, "udp", s.vip(v6, 80), e.web...)
	}
}

// update changes the newest version of the Service, as kubectl edit does, and s becomes the API
// server's result.
func (s *service) update(t *testing.T, change func(*corev1.Service)) {
	t.Helper()
	api := s.e.cluster.Client().CoreV1().Services(s.Namespace)
	now, err := api.Get(s.e.ctx, s.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("read service %s: %v", s.Name, err)
	}
	change(now)
	if s.Service, err = api.Update(s.e.ctx, now, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("update service %s: %v", s.Name, err)
	}
}

// ingress writes load balancer addresses, as a cloud's controller does.
func (s *service) ingress(t *testing.T, all ...corev1.LoadBalancerIngress) {
	t.Helper()
	b, err := json.Marshal(map[string]any{"status": map[string]any{"loadBalancer": map[string]any{"ingress": all}}})
	if err == nil {
		s.Service, err = s.e.cluster.Client().CoreV1().Services(s.Namespace).
			Patch(s.e.ctx, s.Name, types.MergePatchType, b, metav1.PatchOptions{}, "status")
	}
	if err != nil {
		t.Fatalf("write load balancer of service %s: %v", s.Name, err)
	}
}

func (e *env) nobodyListens(t *testing.T, port uint16) {
	t.Helper()
	for _, n := range e.lab.Nodes {
		for _, protocol := range []string{"tcp", "tcp6", "udp", "udp6"} {
			err := n.Do(func() error {
				f, err := os.Open("/proc/thread-self/net/" + protocol)
				if err != nil {
					return err
				}
				defer f.Close()
				lines := bufio.NewScanner(f)
				for lines.Scan() {
					if at := strings.Fields(lines.Text()); len(at) > 1 && strings.HasSuffix(at[1], fmt.Sprintf(":%04X", port)) {
						return fmt.Errorf("%s has a %s socket on %d: %s", n.Name(), protocol, port, lines.Text())
					}
				}
				return lines.Err()
			})
			if err != nil {
				t.Error(err)
			}
		}
	}
}

// lifecycleReuse: a ClusterIP that another Service takes at once leads only to its new owner's pods,
// also for continuing clients.
//
// Behaviour: 12, 112.
func lifecycleReuse(t *testing.T, e *env) {
	first := e.webService(t, "first", nil)
	first.endpoints(t, "a", e.web[:2]...)
	flow := e.flow(t, e.clients[0], first.vip(false, 80), 40200)
	e.spread(t, e.clients[0], "tcp", first.vip(false, 80), e.web[:2]...)
	e.spread(t, e.clients[0], "tcp", first.vip(true, 80), e.web[:2]...)
	if _, err := e.askUDP(flow.Conversation); err != nil {
		t.Fatal(err)
	}
	tcp, err := e.clients[0].Open(e.ctx, "tcp", first.vip(false, 80), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	first.delete(t)
	second := e.webService(t, "second", func(s *corev1.Service) {
		s.Spec.ClusterIP, s.Spec.ClusterIPs = first.Spec.ClusterIP, first.Spec.ClusterIPs
		s.Spec.IPFamilies = first.Spec.IPFamilies
	})
	second.endpoints(t, "a", e.web[2])
	for _, v6 := range []bool{false, true} {
		if first.vip(v6, 80) != second.vip(v6, 80) {
			t.Fatalf("second has %s, want %s of the first", second.vip(v6, 80), first.vip(v6, 80))
		}
		for _, c := range e.clients {
			e.spread(t, c, "tcp", second.vip(v6, 80), e.web[2])
			e.spread(t, c, "udp", second.vip(v6, 80), e.web[2])
		}
	}
	flow.reaches(t, e, e.web[2])
	if _, err := tcp.Ask(e.ctx, "still there"); err != nil {
		t.Errorf("connection made before: %v", err)
	}
	if found := e.traces(t, first.Namespace+"/"+first.Name+":"); len(found) > 0 {
		t.Errorf("left of the first: %s", found[0])
	}
}

// lifecycleMoved: a Service created again under its name has another address; only the new address
// answers.
//
// Behaviour: 13.
func lifecycleMoved(t *testing.T, e *env) {
	old := e.webService(t, "web", nil)
	old.endpoints(t, "a", e.web...)
	for _, c := range e.clients {
		e.spread(t, c, "tcp", old.vip(false, 80), e.web...)
	}
	old.delete(t)
	// The old addresses stay taken, so that the new ones differ.
	holder := e.webService(t, "holder", func(s *corev1.Service) {
		s.Spec.ClusterIP, s.Spec.ClusterIPs, s.Spec.IPFamilies = old.Spec.ClusterIP, old.Spec.ClusterIPs, old.Spec.IPFamilies
	})
	moved := e.webService(t, "web", nil)
	for _, v6 := range []bool{false, true} {
		for _, c := range e.clients {
			e.spread(t, c, "tcp", moved.vip(v6, 80), e.web...)
			e.refused(t, c, "tcp", old.vip(v6, 80))
		}
	}
	holder.delete(t)
	e.silent(t, e.clients[0], "tcp", old.vip(false, 80))
	e.noAddress(t, old.vip(false, 80).Addr())
}

func (e *env) noAddress(t *testing.T, a netip.Addr) {
	t.Helper()
	within(t, e.ctx, settled, "no trace of "+a.String(), func() error {
		if found := e.traces(t, a.String()+" "); len(found) > 0 {
			return fmt.Errorf("left: %s", found[0])
		}
		return nil
	})
}
