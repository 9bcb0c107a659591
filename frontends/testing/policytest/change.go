package policytest

import (
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Change is a changed object. Old is nil for a new object, New for a removed one.
type Change struct{ Old, New metav1.Object }

// Objects returns all objects of the cluster as new, sorted by kind and name.
func (c *Cluster) Objects() []Change {
	var all []Change
	for _, k := range slices.Sorted(maps.Keys(c.Nodes)) {
		all = append(all, Change{New: c.Nodes[k]})
	}
	for _, k := range slices.Sorted(maps.Keys(c.Namespaces)) {
		all = append(all, Change{New: c.Namespaces[k]})
	}
	for _, k := range slices.SortedFunc(maps.Keys(c.Pods), compareNames) {
		all = append(all, Change{New: c.Pods[k]})
	}
	for _, k := range slices.SortedFunc(maps.Keys(c.Policies), compareNames) {
		all = append(all, Change{New: c.Policies[k]})
	}
	for _, k := range slices.Sorted(maps.Keys(c.ClusterPolicies)) {
		all = append(all, Change{New: c.ClusterPolicies[k]})
	}
	return all
}

// Change makes a random change and returns its objects, in a possible order of arrival.
func (g *Generator) Change() []Change {
	for {
		var changes []Change
		switch n := g.IntN(100); {
		case n < 50:
			changes = g.changePod()
		case n < 60:
			changes = g.changeNamespace()
		case n < 85 || g.cfg.ClusterPolicies == 0:
			changes = g.changePolicy()
		default:
			changes = g.changeClusterPolicy()
		}
		if len(changes) > 0 {
			return changes
		}
	}
}

func (g random) grow(have, want int) bool { return have == 0 || g.IntN(have+want) < want }

func (g *Generator) changePod() []Change {
	c := g.Cluster
	if !g.cfg.KeepPods && g.chance(40) {
		if !g.grow(len(c.Pods), g.cfg.Pods) {
			return g.removePod()
		}
		if pod := g.addPod(); pod != nil {
			return []Change{{New: pod}}
		}
		return nil
	}
	key, ok := anyOf(g, c.Pods, compareNames)
	if !ok {
		return nil
	}
	old := c.Pods[key]
	pod := old.DeepCopy()
	kind := g.IntN(8)
	if g.cfg.KeepPods {
		kind = 8
	}
	switch kind {
	case 0: // ends
		if !pod.Spec.HostNetwork {
			pod.Status.Phase = pick(g, corev1.PodSucceeded, corev1.PodFailed)
		}
	case 1:
		now := metav1.Unix(int64(g.serial), 0)
		pod.DeletionTimestamp = &now
	case 2: // new address
		if pod.Spec.HostNetwork || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			return nil
		}
		pod.Status.Phase = corev1.PodRunning
		g.address(pod)
	default:
		pod.Labels = g.labels("app", "tier", "env")
	}
	c.Pods[key] = pod
	return []Change{{Old: old, New: pod}}
}

// Another pod may get the address, and be reported first.
func (g *Generator) removePod() []Change {
	key, _ := anyOf(g, g.Cluster.Pods, compareNames)
	old := g.Cluster.Pods[key]
	delete(g.Cluster.Pods, key)
	changes := []Change{{Old: old}}
	if len(Addresses(old)) == 0 || !g.chance(30) {
		return changes
	}
	pod := g.addPod()
	if pod == nil {
		return changes
	}
	if !pod.Spec.HostNetwork {
		pod.Spec.NodeName, pod.Status = old.Spec.NodeName, *old.Status.DeepCopy()
	}
	changes = append(changes, Change{New: pod})
	if g.chance(50) {
		slices.Reverse(changes)
	}
	return changes
}

func (g *Generator) changeNamespace() []Change {
	c := g.Cluster
	if g.cfg.KeepPods || g.chance(60) {
		name, ok := anyOf(g, c.Namespaces, compareStrings)
		if !ok {
			return nil
		}
		old := c.Namespaces[name]
		ns := old.DeepCopy()
		ns.Labels = g.namespaceLabels(name)
		c.Namespaces[name] = ns
		return []Change{{Old: old, New: ns}}
	}
	if g.grow(len(c.Namespaces), g.cfg.Namespaces) {
		return []Change{{New: g.addNamespace()}}
	}
	name, _ := anyOf(g, c.Namespaces, compareStrings)
	var changes []Change
	for _, key := range slices.SortedFunc(maps.Keys(c.Pods), compareNames) {
		if key.Namespace == name {
			changes = append(changes, Change{Old: c.Pods[key]})
			delete(c.Pods, key)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(c.Policies), compareNames) {
		if key.Namespace == name {
			changes = append(changes, Change{Old: c.Policies[key]})
			delete(c.Policies, key)
		}
	}
	changes = append(changes, Change{Old: c.Namespaces[name]})
	delete(c.Namespaces, name)
	return changes
}

func (g *Generator) changePolicy() []Change {
	c := g.Cluster
	if g.chance(50) {
		key, ok := anyOf(g, c.Policies, compareNames)
		if !ok {
			return nil
		}
		old := c.Policies[key]
		p := old.DeepCopy()
		g.fillPolicy(&p.Spec)
		c.Policies[key] = p
		return []Change{{Old: old, New: p}}
	}
	if g.grow(len(c.Policies), g.cfg.Policies) {
		if p := g.addPolicy(); p != nil {
			return []Change{{New: p}}
		}
		return nil
	}
	key, _ := anyOf(g, c.Policies, compareNames)
	old := c.Policies[key]
	delete(c.Policies, key)
	return []Change{{Old: old}}
}

func (g *Generator) changeClusterPolicy() []Change {
	c := g.Cluster
	name, ok := anyOf(g, c.ClusterPolicies, compareStrings)
	if ok && g.chance(50) {
		old := c.ClusterPolicies[name]
		p := old.DeepCopy()
		g.fillClusterPolicy(&p.Spec)
		c.ClusterPolicies[name] = p
		return []Change{{Old: old, New: p}}
	}
	if g.grow(len(c.ClusterPolicies), g.cfg.ClusterPolicies) {
		return []Change{{New: g.addClusterPolicy()}}
	}
	old := c.ClusterPolicies[name]
	delete(c.ClusterPolicies, name)
	return []Change{{Old: old}}
}

// External is an address outside the cluster.
func External() netip.Addr { return netip.AddrFrom4([4]byte{203, 0, 113, 7}) }

// External6 is an IPv6 address outside the cluster.
func External6() netip.Addr { return netip.MustParseAddr("2001:db8::7") }

// Ends are the addresses of all pods, of all nodes and from outside, sorted.
func (c *Cluster) Ends() []netip.Addr {
	all := []netip.Addr{External(), External6()}
	for _, pod := range c.Pods {
		all = append(all, Addresses(pod)...)
	}
	for _, node := range c.Nodes {
		for _, a := range node.Status.Addresses {
			all = append(all, netip.MustParseAddr(a.Address))
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}

// Flows returns every flow between two ends of the same family, with each port in or next to policies, and
// without ports.
func (c *Cluster) Flows() []Flow {
	var all []Flow
	ends := c.Ends()
	for _, from := range ends {
		for _, to := range ends {
			if from.Is4() != to.Is4() {
				continue
			}
			all = append(all, Flow{From: from, To: to})
			for _, protocol := range protocols() {
				for _, port := range flowPorts() {
					all = append(all, Flow{from, to, protocol, port})
				}
			}
		}
	}
	return all
}

func protocols() []corev1.Protocol {
	return []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}
}

func flowPorts() []int32 { return append(portNumbers(), 82, 500) }

// Flow returns one of Flows at random.
func (g *Generator) Flow(ends []netip.Addr) Flow {
	for {
		f := Flow{From: pick(g, ends...), To: pick(g, ends...)}
		if f.From.Is4() != f.To.Is4() {
			continue
		}
		if !g.chance(5) {
			f.Protocol, f.Port = pick(g, protocols()...), pick(g, flowPorts()...)
		}
		return f
	}
}

// Owner returns the pod with the address in the pod network.
func (c *Cluster) Owner(addr netip.Addr) (types.NamespacedName, bool) {
	for name, pod := range c.Pods {
		if slices.Contains(Addresses(pod), addr) {
			return name, true
		}
	}
	return types.NamespacedName{}, false
}

func mustPrefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }
