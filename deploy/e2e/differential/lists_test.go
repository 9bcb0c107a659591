package differential

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
)

var everyList = flag.Bool("differential.lists", false, "TestNodePortLists compares every list of NodePort addresses, not only some")

// entries of --nodeport-addresses; the CIDRs are of the node's address among the pods.
var entries = []string{"primary", "localhost", "all", "10.244.1.1/32", "fd00:10:244:1::1/128"}

// TestNodePortLists compares the subsets of entries, with the feature gate of NodePorts on loopback addresses.
// A list of one family is in group one-family.
//
// Behaviour: 20-22, 24, 178-180, 183.
func TestNodePortLists(t *testing.T) {
	w := newWorld(t)
	for subset := 1; subset < 1<<len(entries); subset++ {
		var list []string
		for i, e := range entries {
			if subset>>i&1 == 1 {
				list = append(list, e)
			}
		}
		families := len(list) > 1 || slices.Contains(entries[:3], list[0])
		some := slices.Contains([]string{"localhost", "all", "primary,localhost", "localhost,all,10.244.1.1/32"}, strings.Join(list, ","))
		if !families || !some && !*everyList {
			continue
		}
		flags := []string{"--nodeport-addresses=" + strings.Join(list, ","), "--feature-gates=KubeProxyNFTablesLocalhostNodePorts=true"}
		g := group{name: fmt.Sprintf("list-%02d", subset), flags: flags, checks: func() []check { return listed(list) }}
		t.Run(strings.ReplaceAll(strings.Join(list, ","), "/", "-"), func(t *testing.T) { w.play(t, g) })
	}
}

// listed has the probes of a list.
func listed(list []string) []check {
	answers := func(entries ...string) string {
		if slices.ContainsFunc(entries, func(e string) bool { return slices.Contains(list, e) }) {
			return all + " as node"
		}
		return "refused"
	}
	return web("list", all, nil, `
		outside tcp node:80 = `+answers("primary", "all")+`
		pod tcp node:80 = `+answers("primary", "all")+`
		pod tcp gateway:80 v4 = `+answers("all", "10.244.1.1/32")+`
		pod tcp gateway:80 v6 = `+answers("all", "fd00:10:244:1::1/128")+`
		host tcp loopback:80 = `+answers("localhost")+`
		host udp loopback:80 = refused
	`)
}
