package differential

import "testing"

// Each group restarts both proxies.
var groups = []group{
	{name: "clusterip", checks: clusterIPs},
	{name: "endpoints", checks: endpoints},
	{name: "nodeport", checks: nodePorts},
	{name: "address", checks: addresses},
	{name: "ranges", checks: sourceRanges},
	{name: "policy", checks: policies},
	{name: "affinity", checks: affinities},
	{name: "topology", checks: topology},
	{name: "udp", checks: flows},
	{name: "udp-alone", checks: flowsAlone},
	{name: "listed", checks: listedAddresses, flags: []string{"--nodeport-addresses=10.244.1.1/32,fd00:10:244:1::1/128"}},
	{name: "every", checks: everyAddress, flags: []string{"--nodeport-addresses=0.0.0.0/0,::/0"}},
	{name: "one-family", checks: oneFamily, flags: []string{"--nodeport-addresses=192.168.200.0/24"}},
	{name: "masquerade", checks: masqueradeAll, flags: []string{"--masquerade-all"}},
	{name: "nobody-local", checks: nobodyLocal, flags: []string{"--detect-local-mode=ClusterCIDR"}},
	{name: "by-node", checks: byNode, flags: []string{"--detect-local-mode=NodeCIDR"}},
	{name: "by-interface", checks: byInterface, flags: []string{"--detect-local-mode=InterfaceNamePrefix", "--pod-interface-name-prefix=pod"}},
	{name: "cidr", checks: serviceCIDRs},
}

func TestDifferential(t *testing.T) { compareAll(t, newWorld(t)) }

// TestEarlier compares with the earlier kube-proxy.
func TestEarlier(t *testing.T) { compareAll(t, newWorldOf(t, earlier)) }

func compareAll(t *testing.T, w *world) {
	t.Helper()
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) { w.play(t, g) })
	}
}
