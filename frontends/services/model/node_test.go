package model

import (
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// node returns a Node with internal addresses.
func node(name string, addrs ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for _, a := range addrs {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
	}
	return n
}

// TestNodeFields: what is taken of a Node, and what stays while its object is
// gone.
func TestNodeFields(t *testing.T) {
	m := New(Config{NodeName: "n1"})
	if got := m.Node(); got.Known || got.Leaving {
		t.Errorf("before the first event: %+v", got)
	}
	m.DeleteNode("n1")
	if m.Dirty() {
		t.Error("a node that was never seen is gone")
	}
	n := node("n1", "192.0.2.1", "192.0.2.9", "2001:db8::1")
	n.Labels[corev1.LabelTopologyZone] = "a"
	n.Spec.PodCIDRs = []string{"10.244.3.0/24", "fd00:10:244:3::/64", "10.244.1.0/24", "bad"}
	m.SetNode(n)
	if !m.Dirty() || m.Refresh().Node == nil || m.Dirty() {
		t.Fatal("the node did not change, or does not stop to")
	}
	const want = "{true n1 [192.0.2.1 2001:db8::1] [[10.244.1.0/24 10.244.3.0/24] [fd00:10:244:3::/64]] false a false}"
	if got := fmt.Sprint(m.Node()); got != want {
		t.Errorf("node %s, want %s", got, want)
	}
	now := metav1.Now()
	for name, change := range map[string]func(*corev1.Node){
		"taint": func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "other"}, {Key: DeletionTaint, Effect: corev1.TaintEffectNoSchedule}}
		},
		"deletion": func(n *corev1.Node) { n.DeletionTimestamp = &now },
	} {
		c := n.DeepCopy()
		change(c)
		m.SetNode(c)
		if got := m.Refresh().Node; got == nil || !got.Leaving {
			t.Errorf("%s: %+v, want the node leaving", name, got)
		}
		m.SetNode(n)
		if got := m.Refresh().Node; got == nil || got.Leaving {
			t.Errorf("%s taken back: %+v", name, got)
		}
	}
	m.DeleteNode("n1")
	m.DeleteNode("n1")
	m.DeleteNode("n2")
	if got := m.Refresh().Node; got == nil || fmt.Sprint(*got) != "{true n1 [192.0.2.1 2001:db8::1] [[10.244.1.0/24 10.244.3.0/24] [fd00:10:244:3::/64]] false a true}" {
		t.Errorf("gone: %+v, want it leaving and everything else as it was", got)
	}
	// Its object is away for a moment: nothing happened in between.
	m.SetNode(n)
	m.Refresh()
	m.DeleteNode("n1")
	m.SetNode(n)
	if c := m.Refresh(); !c.Empty() {
		t.Errorf("changes %+v", c)
	}
}

// TestNodeHeartbeats: status updates that say nothing new make no revision and
// log a fault once.
func TestNodeHeartbeats(t *testing.T) {
	m, _ := newLogged()
	n := node("n1", "192.0.2.1", "bad")
	m.SetNode(n)
	m.Refresh()
	was := m.Stats()
	for i := range 3 {
		n = n.DeepCopy()
		n.Annotations = map[string]string{"beat": fmt.Sprint(i)}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, LastHeartbeatTime: metav1.Now()}}
		m.SetNode(n)
		if m.Dirty() {
			t.Fatal("a heartbeat is something to look at")
		}
		m.Refresh()
	}
	now := m.Stats()
	if now.Revision != was.Revision || now.Skipped != 1 || now.NodeEvents != was.NodeEvents+3 {
		t.Errorf("from %+v to %+v", was, now)
	}
}

// TestNodeAddressOverride: bindAddress counts from the start, in its family.
func TestNodeAddressOverride(t *testing.T) {
	m := New(Config{NodeName: "n1", NodeAddresses: [NumFamilies]netip.Addr{IPv6: netip.MustParseAddr("2001:db8::99")}})
	if c := m.Refresh(); c.Node == nil || c.Node.Known || fmt.Sprint(c.Node.Addresses) != "[invalid IP 2001:db8::99]" {
		t.Errorf("before the node is known: %+v", c.Node)
	}
	m.SetNode(node("n1", "192.0.2.1", "2001:db8::1"))
	m.Refresh()
	if got := fmt.Sprint(m.Node().Addresses); got != "[192.0.2.1 2001:db8::99]" {
		t.Errorf("addresses %s", got)
	}
}

// TestPodCIDR: a file may have only the old field.
func TestPodCIDR(t *testing.T) {
	m := New(Config{NodeName: "n1"})
	n := node("n1")
	n.Spec.PodCIDR = "10.244.1.0/24"
	m.SetNode(n)
	m.Refresh()
	if got := fmt.Sprint(m.Node().PodCIDRs); got != "[[10.244.1.0/24] []]" {
		t.Errorf("pod CIDRs %s", got)
	}
}

// TestPodCIDRsOfANewNode: a Node that is created anew without podCIDRs keeps those that it had until
// it has some.
//
// Behaviour: 92.
func TestPodCIDRsOfANewNode(t *testing.T) {
	m := New(Config{NodeName: "n1"})
	with := func(cidrs ...string) *corev1.Node {
		n := node("n1")
		n.Spec.PodCIDRs = cidrs
		return n
	}
	for _, tt := range []struct {
		node *corev1.Node
		want string
	}{
		{with(), "[[] []] false"},
		{with("10.244.1.0/24", "fd00:10:244:1::/64"), "[[10.244.1.0/24] [fd00:10:244:1::/64]] false"},
		{nil, "[[10.244.1.0/24] [fd00:10:244:1::/64]] false"},
		{with(), "[[10.244.1.0/24] [fd00:10:244:1::/64]] true"},
		{with("bad"), "[[10.244.1.0/24] [fd00:10:244:1::/64]] true"},
		{with("10.244.9.0/24"), "[[10.244.9.0/24] []] false"},
	} {
		if tt.node == nil {
			m.DeleteNode("n1")
		} else {
			m.SetNode(tt.node)
		}
		m.Refresh()
		if got := fmt.Sprint(m.Node().PodCIDRs, m.Node().Kept); got != tt.want {
			t.Errorf("pod CIDRs %s, want %s", got, tt.want)
		}
	}
}

func serviceCIDRObject(name string, ranges ...string) *networkingv1.ServiceCIDR {
	return &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: ranges}}
}

// TestServiceCIDRs: several objects and several ranges make one list for each
// family, and only a real change of it counts.
//
// Behaviour: 14, 16.
func TestServiceCIDRs(t *testing.T) {
	m := New(Config{})
	m.SetServiceCIDR(serviceCIDRObject("kubernetes", "10.96.0.0/16", "fd00:96::/112"))
	m.SetServiceCIDR(serviceCIDRObject("more", "10.090.0.0/16", "10.96.0.0/16", "bad"))
	c := m.Refresh()
	const want = "[[10.90.0.0/16 10.96.0.0/16] [fd00:96::/112]]"
	if c.ServiceCIDRs == nil || fmt.Sprint(*c.ServiceCIDRs) != want || fmt.Sprint(m.Snapshot().ServiceCIDRs) != want {
		t.Fatalf("ranges %v, snapshot %v, want %s", c.ServiceCIDRs, m.Snapshot().ServiceCIDRs, want)
	}
	m.SetServiceCIDR(serviceCIDRObject("more", "10.090.0.0/16", "10.96.0.0/16", "bad"))
	m.SetServiceCIDR(serviceCIDRObject("third", "10.96.0.0/16"))
	m.DeleteServiceCIDR("never-seen")
	if c := m.Refresh(); !c.Empty() || m.Stats().Revision != 1 || m.Stats().Skipped != 1 {
		t.Errorf("the same ranges in other objects changed %+v, stats %+v", c, m.Stats())
	}
	m.DeleteServiceCIDR("kubernetes")
	if c := m.Refresh(); c.ServiceCIDRs == nil || fmt.Sprint(*c.ServiceCIDRs) != "[[10.90.0.0/16 10.96.0.0/16] []]" {
		t.Errorf("without one object: %v", c.ServiceCIDRs)
	}
	m.DeleteServiceCIDR("more")
	m.DeleteServiceCIDR("third")
	if c := m.Refresh(); c.ServiceCIDRs == nil || c.ServiceCIDRs[IPv4] != nil || m.Stats().ServiceCIDREvents != 8 {
		t.Errorf("without any: %v, stats %+v", c.ServiceCIDRs, m.Stats())
	}
}
