package e2e

import (
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// cidrAdded: unassigned addresses of a ClusterIP range are dropped while the range exists; assigned
// addresses never are.
//
// Behaviour: 15, 16, 17, 18.
func cidrAdded(t *testing.T, e *env) {
	api := e.cluster.Client().NetworkingV1().ServiceCIDRs()
	// A host that answers on addresses of the ranges shows the dropped packets.
	strangers := map[bool]netip.AddrPort{
		false: netip.MustParseAddrPort("10.97.0.9:8080"),
		true:  netip.MustParseAddrPort("[fd00:10:97::9]:8080"),
	}
	stranger := e.stranger(t, 2, strangers[false], strangers[true])
	for _, to := range strangers {
		for _, c := range e.clients[:2] {
			e.spread(t, c, "tcp", to, stranger)
		}
	}
	created, err := api.Create(e.ctx, &networkingv1.ServiceCIDR{
		ObjectMeta: metav1.ObjectMeta{Name: e.namespace},
		Spec:       networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.97.0.0/24", "fd00:10:97::/112"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	gone := false
	defer func() {
		if !gone {
			if err := api.Delete(e.ctx, created.Name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
	}()
	var lost []question
	for _, to := range strangers {
		for _, c := range e.clients[:2] {
			lost = append(lost, question{c, "tcp", to}, question{c, "udp", to})
		}
	}
	e.dropped(t, lost...)
	// The range controller's status makes its addresses assignable.
	created.Status.Conditions = []metav1.Condition{{
		Type: networkingv1.ServiceCIDRConditionReady, Status: metav1.ConditionTrue, Reason: "e2e", LastTransitionTime: metav1.NewTime(time.Now()),
	}}
	if _, err := api.UpdateStatus(e.ctx, created, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	s := e.serviceOf(t, "web", strangers[false].Addr(), strangers[true].Addr())
	s.endpoints(t, "a", e.web[:2]...)
	for _, v6 := range []bool{false, true} {
		e.spread(t, e.clients[0], "tcp", s.vip(v6, 80), e.web[:2]...)
		e.refused(t, e.clients[0], "tcp", strangers[v6])
	}
	s.delete(t)
	e.dropped(t, question{e.clients[0], "tcp", strangers[false]}, question{e.clients[0], "tcp", strangers[true]})
	if err := api.Delete(e.ctx, created.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	gone = true
	for _, to := range strangers {
		for _, c := range e.clients[:2] {
			e.spread(t, c, "tcp", to, stranger)
		}
	}
}

// stranger answers on addresses outside of all pod prefixes, all on the first one's port, until the
// scenario ends.
func (e *env) stranger(t *testing.T, node int, at ...netip.AddrPort) *lab.Pod {
	t.Helper()
	p, err := e.lab.Nodes[node].NewPod("stranger")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, a := range at {
			if err := p.Withdraw(a.Addr()); err != nil {
				t.Error(err)
			}
		}
		if err := p.Remove(); err != nil {
			t.Error(err)
		}
	})
	if err := p.Serve(at[0].Port()); err != nil {
		t.Fatal(err)
	}
	for _, a := range at {
		if err := p.Announce(a.Addr()); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// The API server learns of new ranges by a watch, so serviceOf retries.
func (e *env) serviceOf(t *testing.T, name string, addrs ...netip.Addr) *service {
	t.Helper()
	policy := corev1.IPFamilyPolicyRequireDualStack
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: e.namespace}, Spec: corev1.ServiceSpec{IPFamilyPolicy: &policy}}
	for _, a := range addrs {
		s.Spec.ClusterIPs = append(s.Spec.ClusterIPs, a.String())
	}
	s.Spec.ClusterIP = s.Spec.ClusterIPs[0]
	s.Spec.Ports = webServicePorts()
	within(t, e.ctx, settled, "a Service gets "+addrs[0].String(), func() error {
		created, err := e.cluster.Client().CoreV1().Services(e.namespace).Create(e.ctx, s, metav1.CreateOptions{})
		if err == nil {
			s = created
		}
		return err
	})
	return &service{e: e, Service: s}
}
