package policytest

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Config describes the cluster of a Generator.
type Config struct {
	Seed                              uint64
	Nodes, Namespaces, Pods, Policies int
	ClusterPolicies                   int
	// Changes do not add or remove pods and namespaces.
	KeepPods bool
}

// Generator makes a random cluster and changes it. The API server would accept all its objects.
type Generator struct {
	Cluster *Cluster

	random
	cfg    Config
	serial int // for new names and UIDs
}

// random makes the parts of objects that do not depend on the cluster.
type random struct{ *rand.Rand }

type source interface{ IntN(n int) int }

// New makes a cluster. Nodes are "node-1" and so on.
func New(cfg Config) *Generator {
	g := &Generator{Cluster: NewCluster(), cfg: cfg, random: random{rand.New(rand.NewPCG(cfg.Seed, 0x77656674))}}
	for i := range cfg.Nodes {
		g.addNode(i + 1)
	}
	for range cfg.Namespaces {
		g.addNamespace()
	}
	for range cfg.Pods {
		g.addPod()
	}
	for range cfg.Policies {
		g.addPolicy()
	}
	for range cfg.ClusterPolicies {
		g.addClusterPolicy()
	}
	return g
}

// Rand is the generator's source of random numbers.
func (g *Generator) Rand() *rand.Rand { return g.random.Rand }

func (g *Generator) name(prefix string) string {
	g.serial++
	return fmt.Sprintf("%s-%d", prefix, g.serial)
}

func (g random) chance(n int) bool { return g.IntN(100) < n }

func pick[T any](g source, values ...T) T { return values[g.IntN(len(values))] }

func some[T any](g source, most int, f func() T) []T {
	all := make([]T, 1+g.IntN(most))
	for i := range all {
		all[i] = f()
	}
	return all
}

// anyOf returns false for an empty map.
func anyOf[K comparable, V any](g source, m map[K]V, compare func(a, b K) int) (k K, ok bool) {
	if len(m) == 0 {
		return k, false
	}
	keys := make([]K, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, compare)
	return pick(g, keys...), true
}

func (g *Generator) addNode(number int) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", number), UID: types.UID(g.name("uid"))}}
	node.Spec.PodCIDRs = []string{fmt.Sprintf("10.244.%d.0/24", number), fmt.Sprintf("fd00:10:244:%d::/64", number)}
	node.Spec.PodCIDR = node.Spec.PodCIDRs[0]
	for _, addr := range []string{fmt.Sprintf("192.168.200.%d", 10+number), fmt.Sprintf("fd00:200::%d", 10+number)} {
		node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: addr})
	}
	g.Cluster.Nodes[node.Name] = node
}

func (g *Generator) addNamespace() *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: g.name("ns")}}
	ns.UID = types.UID(g.name("uid"))
	ns.Labels = g.namespaceLabels(ns.Name)
	g.Cluster.Namespaces[ns.Name] = ns
	return ns
}

func (g *Generator) namespaceLabels(name string) map[string]string {
	labels := g.labels("team", "env")
	labels[corev1.LabelMetadataName] = name
	return labels
}

func (g random) labels(keys ...string) map[string]string {
	labels := map[string]string{}
	for _, key := range keys {
		if g.chance(75) {
			labels[key] = g.value()
		}
	}
	return labels
}

func (g random) value() string { return pick(g, "a", "a", "b", "b", "c", "") }

// addPod returns nil without a namespace.
func (g *Generator) addPod() *corev1.Pod {
	namespace, ok := anyOf(g, g.Cluster.Namespaces, compareStrings)
	if !ok {
		return nil
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: g.name("pod")}}
	pod.UID = types.UID(g.name("uid"))
	pod.Labels = g.labels("app", "tier", "env")
	pod.Spec.NodeName = fmt.Sprintf("node-%d", 1+g.IntN(g.cfg.Nodes))
	pod.Status.Phase = corev1.PodRunning
	pod.Spec.Containers = []corev1.Container{{Name: "main", Ports: g.containerPorts(pod)}}
	if g.chance(20) {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "second", Ports: g.containerPorts(pod)})
	}
	if g.chance(15) {
		always := corev1.ContainerRestartPolicyAlways
		ic := corev1.Container{Name: "init", Ports: g.containerPorts(pod)}
		if g.chance(50) {
			ic.RestartPolicy = &always
		}
		pod.Spec.InitContainers = []corev1.Container{ic}
	}
	switch {
	case g.chance(5):
		pod.Spec.HostNetwork = true
		for _, a := range g.Cluster.Nodes[pod.Spec.NodeName].Status.Addresses {
			pod.Status.PodIPs = append(pod.Status.PodIPs, corev1.PodIP{IP: a.Address})
		}
		pod.Status.PodIP = pod.Status.PodIPs[0].IP
	case g.chance(8):
		pod.Status.Phase = corev1.PodPending
	default:
		g.address(pod)
	}
	g.Cluster.Pods[namespacedName(pod)] = pod
	return pod
}

// containerPorts gives a pod at most one port for each name and protocol.
func (g *Generator) containerPorts(pod *corev1.Pod) []corev1.ContainerPort {
	var ports []corev1.ContainerPort
	for _, name := range []string{"web", "dns", "metrics"} {
		port := corev1.ContainerPort{
			Name: name, ContainerPort: pick(g, portNumbers()...),
			Protocol: pick(g, corev1.ProtocolTCP, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP),
		}
		used := slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
			return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == name && p.Protocol == port.Protocol })
		})
		if !used && g.chance(50) {
			ports = append(ports, port)
		}
	}
	return ports
}

func portNumbers() []int32 { return []int32{80, 81, 443, 5353} }

// Another pod may have had the address. One pod in seven has a single family.
func (g *Generator) address(pod *corev1.Pod) {
	var node int
	if _, err := fmt.Sscanf(pod.Spec.NodeName, "node-%d", &node); err != nil {
		panic(fmt.Sprintf("policytest: node of pod %s: %v", pod.Name, err))
	}
	free := 2 + g.IntN(4)
	taken := func(addr string) bool { _, ok := g.Cluster.Owner(netip.MustParseAddr(addr)); return ok }
	for taken(fmt.Sprintf("10.244.%d.%d", node, free)) || taken(fmt.Sprintf("fd00:10:244:%d::%x", node, free)) {
		free++
	}
	v4 := corev1.PodIP{IP: fmt.Sprintf("10.244.%d.%d", node, free)}
	v6 := corev1.PodIP{IP: fmt.Sprintf("fd00:10:244:%d::%x", node, free)}
	switch pick(g, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2) {
	case 0:
		pod.Status.PodIPs = []corev1.PodIP{v4}
	case 1:
		pod.Status.PodIPs = []corev1.PodIP{v6}
	default:
		pod.Status.PodIPs = []corev1.PodIP{v4, v6}
	}
	pod.Status.PodIP = pod.Status.PodIPs[0].IP
}

func namespacedName(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}
