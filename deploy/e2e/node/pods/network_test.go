package pods

import (
	"net"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// hostNetwork: a pod on the host's network has the node's addresses, name and ports.
func hostNetwork(t *testing.T, e *env) {
	c := netexec(8180)
	p := e.newPod("pod", 0, c)
	p.Spec.HostNetwork = true
	got := e.run(t, p)
	n := e.lab.Nodes[0]
	if want := n.Addresses.V4.String(); got.Status.PodIP != want || len(got.Status.PodIPs) != 2 {
		t.Errorf("addresses of the pod are %v, want those of the node", got.Status.PodIPs)
	}
	for _, addr := range n.Addresses.All() {
		url := "http://" + net.JoinHostPort(addr.String(), "8180") + "/hostname"
		if name := get(t, url); name != n.Name() {
			t.Errorf("GET %s = %q, want %q", url, name, n.Name())
		}
	}
}

// hostPort asks a pod through a port of its node, from outside and from a pod of the same node.
func hostPort(t *testing.T, e *env) {
	const port = 30080
	c := netexec(8080)
	c.Ports = []corev1.ContainerPort{{ContainerPort: 8080, HostPort: port, Protocol: corev1.ProtocolTCP}}
	server := e.run(t, e.newPod("server", 1, c))
	client := e.run(t, e.newPod("client", 1, shell("client", "sleep 1000")))
	// Host ports survive a flush of the node's ruleset.
	if _, err := e.lab.Nodes[1].Run(t.Context(), "nft", "flush", "ruleset"); err != nil {
		t.Fatal(err)
	}
	for _, addr := range e.lab.Nodes[1].Addresses.All() {
		url := "http://" + net.JoinHostPort(addr.String(), strconv.Itoa(port)) + "/hostname"
		if name := get(t, url); name != server.Name {
			t.Errorf("GET %s = %q, want %q", url, name, server.Name)
		}
		if name := e.shell(t, client.Name, "curl -gsS -m 5 "+url); name != server.Name {
			t.Errorf("GET %s from a pod = %q, want %q", url, name, server.Name)
		}
	}
	e.delete(t, server.Name)
}
