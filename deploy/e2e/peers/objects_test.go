package peers

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// An app is the pods of a namespace that one policy selects.
const (
	namespaces = 50
	apps       = 20 // per namespace
	nodes      = 46
	perNode    = 110
	pods       = nodes * perNode
	teams      = 10
)

const (
	friends   = "friends"   // the namespace that all policies admit
	strangers = "strangers" // the namespace that only the changed policy admits
)

// numbers are the servers' pods, which have a network namespace on the node.
var numbers = []int{0, 30 * nodes, 60 * nodes, 100 * nodes}

// cluster is the API server's initial content.
type cluster struct {
	nodes      []*corev1.Node
	namespaces []*corev1.Namespace
	pods       []*corev1.Pod
	policies   []*networkingv1.NetworkPolicy
}

// newCluster mixes the lab's servers and clients with pods that exist only in the API.
func newCluster(node *lab.Node, servers map[int]*lab.Pod, clients map[string]*lab.Pod) *cluster {
	address := node.Addresses.V4
	c := &cluster{nodes: []*corev1.Node{{
		ObjectMeta: meta("", node.Name(), nil),
		Spec:       corev1.NodeSpec{PodCIDR: node.PodCIDRs[0].String(), PodCIDRs: []string{node.PodCIDRs[0].String()}},
		Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address.String()}}},
	}}}
	for i := range namespaces {
		c.namespaces = append(c.namespaces, newNamespace(namespaceName(i), i))
		for app := range apps {
			c.policies = append(c.policies, newPolicy(i, app))
		}
	}
	for i := range pods {
		ip := podAddress(i)
		if server := servers[i]; server != nil {
			ip = server.Addresses.V4
		}
		p := newPod(namespaceName(i), "pod-"+strconv.Itoa(i), ip)
		p.Labels = map[string]string{"app": appName(i / namespaces), "tier": []string{"front", "back", "data"}[i%3]}
		if i%nodes == 0 {
			place(p, node.Name(), address)
		} else {
			place(p, "other-"+strconv.Itoa(i%nodes), netip.AddrFrom4([4]byte{192, 168, 201, byte(i % nodes)}))
		}
		c.pods = append(c.pods, p)
	}
	for name, client := range clients {
		p := newPod(name, name, client.Addresses.V4)
		place(p, node.Name(), address)
		c.pods = append(c.pods, p)
		c.namespaces = append(c.namespaces, newNamespace(name, -1))
	}
	return c
}

func meta(namespace, name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name), Labels: labels}
}

func namespaceName(i int) string { return "ns-" + strconv.Itoa(i%namespaces) }

func appName(i int) string { return "app-" + strconv.Itoa(i%apps) }

func teamName(i int) string { return "team-" + strconv.Itoa(i%teams) }

// Every namespace belongs to a team, except the number -1.
func newNamespace(name string, i int) *corev1.Namespace {
	labels := map[string]string{corev1.LabelMetadataName: name}
	if i >= 0 {
		labels["team"] = teamName(i)
	}
	return &corev1.Namespace{ObjectMeta: meta("", name, labels), Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}}
}

// podAddress begins after the prefixes of the lab's nodes.
func podAddress(i int) netip.Addr {
	base := [4]byte{10, 244, 16, 1}
	binary.BigEndian.PutUint32(base[:], binary.BigEndian.Uint32(base[:])+uint32(i))
	return netip.AddrFrom4(base)
}

func newPod(namespace, name string, address netip.Addr) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: meta(namespace, name, nil),
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: address.String(), PodIPs: []corev1.PodIP{{IP: address.String()}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

func place(p *corev1.Pod, node string, address netip.Addr) {
	p.Spec.NodeName = node
	p.Status.HostIP, p.Status.HostIPs = address.String(), []corev1.HostIP{{IP: address.String()}}
}

// newPolicy selects the pods of an app. It admits the next app, the front tier of a team's five
// namespaces, a private network without a part, and all friends. Every fourth policy denies its pods
// the address where clouds serve credentials.
func newPolicy(namespace, app int) *networkingv1.NetworkPolicy {
	p := &networkingv1.NetworkPolicy{
		ObjectMeta: meta(namespaceName(namespace), appName(app), nil),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: selector("app", appName(app)),
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{
				{
					From: []networkingv1.NetworkPolicyPeer{
						{PodSelector: new(selector("app", appName(app+1)))},
						{NamespaceSelector: new(selector("team", teamName(namespace+app))), PodSelector: new(selector("tier", "front"))},
						{IPBlock: &networkingv1.IPBlock{CIDR: "172.16.0.0/12", Except: []string{fmt.Sprintf("172.16.%d.0/24", app)}}},
					},
					Ports: []networkingv1.NetworkPolicyPort{tcp(80), tcp(443)},
				},
				admit(friends),
			},
		},
	}
	if app%4 == 3 {
		p.Spec.PolicyTypes = append(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		p.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{
			{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0", Except: []string{"169.254.169.254/32"}}},
		}}}
	}
	return p
}

// changedPolicy selects the first server. If open, it also admits the strangers.
func changedPolicy(open bool) *networkingv1.NetworkPolicy {
	p := newPolicy(0, 0)
	if open {
		p.Spec.Ingress = append(p.Spec.Ingress, admit(strangers))
	}
	return p
}

func admit(namespace string) networkingv1.NetworkPolicyIngressRule {
	return networkingv1.NetworkPolicyIngressRule{From: []networkingv1.NetworkPolicyPeer{
		{NamespaceSelector: new(selector(corev1.LabelMetadataName, namespace))},
	}}
}

func selector(key, value string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

func tcp(port int) networkingv1.NetworkPolicyPort {
	return networkingv1.NetworkPolicyPort{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromInt(port))}
}
