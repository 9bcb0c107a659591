package cyclonus

import (
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
	"github.com/weft-proxy/weft/frontends/testing/policytest"
)

// podStates shows which pods count, and when: in their host's network, ending, without an address, and
// with ports of init containers.
//
// Policy behaviour: 9-11, 27, 32, 34.
func podStates(t *testing.T, w *world) {
	c := policytest.NewCluster()
	c.Namespaces["shop"] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "shop"}}
	api, err := w.follow(c)
	if err != nil {
		t.Fatal(err)
	}
	defer api.Stop()
	w.unlimitErrors(t)
	own, other := w.lab.Nodes[0], w.lab.Nodes[1]
	inside, remote := w.agents[clientPod].pod.Namespace, other.Namespace
	to := at(w.places[serverPod].addresses, ports[0])
	expect := func(what string, from *lab.Namespace, to [2]netip.AddrPort, want outcome) {
		t.Helper()
		expectAll(t, what, from, to, want)
	}

	// A pod counts once it has an address.
	server, client := w.shopPod(t, serverPod), w.shopPod(t, clientPod)
	pending := server.DeepCopy()
	pending.Status = corev1.PodStatus{Phase: corev1.PodPending}
	api.Set(policyOf("w-a", networkingv1.PolicyTypeIngress), pending, client)
	expect("the pod has no address", inside, to, answered)
	api.Set(server)
	expect("the pod has an address", inside, to, silent)

	// Its own node reaches it; another node does if a block has its address.
	expect("from its own node", own.Namespace, to, answered)
	expect("from another node", remote, to, silent)
	api.Set(ingressFrom("w-a", other.Addresses.All()))
	expect("from another node, with its address in a block", remote, to, answered)
	// The node has no listener on the port.
	api.Set(egressTo("y-c", w.places[serverPod].addresses, int32(ports[0])))
	expect("to another node", inside, at(other.Addresses.All(), nodePort), silent)
	api.Set(egressTo("y-c", other.Addresses.All(), nodePort))
	expect("to another node, with its address in a block", inside, at(other.Addresses.All(), nodePort), refused)
	api.Delete(egressTo("y-c", nil, 0))

	// A pod in its host's network is not a peer, and policies do not affect its node.
	host := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "host", UID: "host", Labels: map[string]string{"app": "host"}}}
	host.Spec.NodeName, host.Spec.HostNetwork = other.Name(), true
	setAddresses(host, other.Addresses.All())
	api.Set(host, egressTo("host", nil, 1), ingressFromPods("w-a", "host"))
	expect("a pod in the network of its host, as a peer", remote, to, silent)
	expect("a pod in the network of its host, as a subject", remote, at(w.places[clientPod].addresses, ports[0]), answered)

	// A terminating pod counts until it has ended.
	api.Set(ingressFromPods("w-a", "y-c"))
	expect("a running pod", inside, to, answered)
	ending := client.DeepCopy()
	ending.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	api.Set(ending)
	expect("a pod that is being terminated", inside, to, answered)
	ended := ending.DeepCopy()
	ended.Status.Phase = corev1.PodSucceeded
	api.Set(ended)
	expect("a pod that has ended", inside, to, silent)

	// The port of an init container has a name if the container keeps running.
	named := ingressFrom("w-a", nil)
	for _, protocol := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
		web := intstr.FromString("web")
		named.Spec.Ingress[0].Ports = append(named.Spec.Ingress[0].Ports, networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: &web})
	}
	initial := server.DeepCopy()
	initial.Spec.InitContainers = []corev1.Container{{Name: "init"}}
	for _, protocol := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
		initial.Spec.InitContainers[0].Ports = append(initial.Spec.InitContainers[0].Ports, corev1.ContainerPort{Name: "web", ContainerPort: int32(ports[0]), Protocol: protocol})
	}
	api.Set(named, initial)
	expect("the port of an init container that ends", inside, to, silent)
	sidecar, always := initial.DeepCopy(), corev1.ContainerRestartPolicyAlways
	sidecar.Spec.InitContainers[0].RestartPolicy = &always
	api.Set(sidecar)
	expect("the port of a sidecar", inside, to, answered)
	expect("another port", inside, at(w.places[serverPod].addresses, ports[1]), silent)
	if err := w.err(); err != nil {
		t.Error(err)
	}
}

// ingressFromPods admits only pods with a label.
func ingressFromPods(app, from string) *networkingv1.NetworkPolicy {
	p := ingressFrom(app, nil)
	p.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": from}}}}}}
	return p
}
