package knft_test

import (
	"slices"
	"time"

	"sigs.k8s.io/knftables"
)

func usages() []usage {
	return slices.Concat(
		tableUsages(), familyUsages(), chainUsages(), ruleUsages(), ruleReferenceUsages(), setUsages(), mapUsages(), elementUsages(), programUsages(),
	)
}

func tableUsages() []usage {
	return []usage{
		{name: "add table", want: done, when: add(table())},
		{name: "add table with a comment", want: done, when: add(&knftables.Table{Comment: ptr("a table; it is { mine }")})},
		{name: "add table that exists", want: done, given: scenery, when: add(table())},
		{name: "create table", want: done, when: create(table())},
		{name: "create table that exists", want: exists, given: scenery, when: create(table())},
		{name: "delete table", want: done, given: scenery, when: remove(table())},
		{name: "delete table that is not there", want: notFound, when: remove(table())},
		{name: "destroy table", want: done, given: scenery, when: destroy(table())},
		{name: "destroy table that is not there", want: done, when: destroy(table())},
		{name: "flush table", want: done, given: scenery, when: flush(table())},
		{name: "flush table that is not there", want: notFound, when: flush(table())},
		{name: "add, delete, add table", want: done, given: scenery, when: steps(
			add(table()), remove(table()), add(&knftables.Table{Comment: ptr("scenery")}, chain("new")),
		)},
	}
}

func familyUsages() []usage {
	const filter, input, priority = knftables.FilterType, knftables.InputHook, knftables.FilterPriority
	ingress := base("in", filter, knftables.IngressHook, priority)
	ingress.Device = ptr("lo")
	return []usage{
		{name: "ip6 table", family: knftables.IPv6Family, want: done, when: add(
			table(), base("in", filter, input, priority),
			set("hosts", "ipv6_addr"), member("hosts", "fd00::1"), rule("in", "ip6 saddr @hosts accept"),
		)},
		{name: "inet table", family: knftables.InetFamily, want: done,
			when: add(table(), base("in", filter, input, priority), rule("in", "tcp dport { 22, 80 } accept"))},
		{name: "bridge table", family: knftables.BridgeFamily, want: done,
			when: add(table(), base("bridged", filter, knftables.ForwardHook, priority), rule("bridged", "meta mark 0x1 drop"))},
		{name: "netdev table", family: knftables.NetDevFamily, want: done, when: add(table(), ingress, rule("in", "ip saddr 192.0.2.1 drop"))},
		{name: "arp table", family: knftables.ARPFamily, want: done,
			when: add(table(), base("in", filter, input, priority), rule("in", `iifname "eth0" accept`))},
	}
}

func chainUsages() []usage {
	const filter, input = knftables.FilterType, knftables.InputHook
	drop := base("base", filter, input, knftables.FilterPriority)
	drop.Policy = ptr(knftables.DropPolicy)
	whole := base("c", knftables.NATType, knftables.PreroutingHook, knftables.DNATPriority)
	whole.Comment, whole.Policy = ptr("to backends"), ptr(knftables.AcceptPolicy)
	return []usage{
		{name: "add chain with a comment", want: done, when: add(table(), &knftables.Chain{Name: "c", Comment: ptr("no hook")})},
		{name: "add base chain with all fields", want: done, when: add(table(), whole)},
		{name: "add base chain at a priority by name and offset", want: done,
			when: add(table(), base("c", filter, knftables.ForwardHook, "mangle+7"))},
		{name: "add base chain at a priority by number", want: done, when: add(table(), base("c", filter, knftables.OutputHook, "-42"))},
		{name: "add nat chain at dstnat in output", want: done,
			when: add(table(), base("c", knftables.NATType, knftables.OutputHook, knftables.DNATPriority))},
		{name: "add chain with a name of kube-proxy's", want: done, when: add(table(), chain("service-ULMVA6XW-ns1/svc1/tcp/p80"))},
		{name: "add chain without table", want: notFound, when: add(chain("c"))},
		{name: "add chain that exists", want: done, given: scenery, when: add(chain("plain"))},
		{name: "add base chain that exists without its hook", want: done, given: scenery, when: add(chain("base"))},
		{name: "add base chain that exists with another policy", want: done, given: scenery, when: add(drop)},
		{name: "add base chain that exists at another priority", want: refused, given: scenery, when: add(base("base", filter, input, "5"))},
		{name: "add base chain that exists with another type", want: exists, given: scenery,
			when: add(base("base", knftables.NATType, input, "0"))},
		{name: "add hook to a chain that exists", want: exists, given: scenery, when: add(base("plain", filter, input, "0"))},
		{name: "create chain", want: done, given: scenery, when: create(chain("c"))},
		{name: "create chain that exists", want: exists, given: scenery, when: create(chain("plain"))},
		{name: "flush chain", want: done, given: scenery, when: flush(chain("base"))},
		{name: "flush chain that is not there", want: notFound, given: scenery, when: flush(chain("none"))},
		{name: "delete chain", want: done, given: scenery, when: remove(chain("empty"))},
		{name: "delete chain with rules", want: done, given: scenery, when: remove(chain("base"))},
		{name: "delete chain in use", want: refused, given: scenery, when: remove(chain("plain"))},
		{name: "delete chain twice", want: notFound, given: scenery, when: remove(chain("empty"), chain("empty"))},
		{name: "destroy chain", want: done, given: scenery, when: destroy(chain("empty"))},
		{name: "destroy chain that is not there", want: done, given: scenery, when: destroy(chain("none"))},
		{name: "delete and add chain with another hook", want: done, given: scenery, when: steps(
			remove(chain("base")), add(base("base", filter, knftables.OutputHook, "raw"), noted("base", "accept", "new")),
		)},
		{name: "add chain without a name", want: refused, given: scenery, when: add(chain(""))},
	}
}

func setUsages() []usage {
	whole := &knftables.Set{
		Name: "s", Type: "ipv4_addr", Flags: []knftables.SetFlag{knftables.TimeoutFlag}, Timeout: ptr(time.Hour), GCInterval: ptr(time.Minute),
		Size: ptr[uint64](1000), Policy: ptr(knftables.MemoryPolicy), Comment: ptr("a set"),
	}
	merged := set("s", "ipv4_addr", knftables.IntervalFlag)
	merged.AutoMerge = ptr(true)
	dynamic := set("s", "ipv4_addr", knftables.DynamicFlag, knftables.TimeoutFlag)
	dynamic.Timeout, dynamic.Size = ptr(time.Minute), ptr[uint64](100)
	return []usage{
		{name: "add set with all fields", want: done, when: add(table(), whole)},
		{name: "add set by typeof", want: done, when: add(table(), &knftables.Set{Name: "s", TypeOf: "ip saddr . tcp dport"})},
		{name: "add set of intervals that are merged", want: done, when: add(table(), merged)},
		{name: "add dynamic set", want: done, when: add(table(), dynamic)},
		{name: "add set of an unknown type", want: refused, when: add(table(), set("s", "frobs"))},
		{name: "add set without table", want: notFound, when: add(set("s", "ipv4_addr"))},
		{name: "add set that exists", want: done, given: scenery, when: add(set("hosts", "ipv4_addr"))},
		{name: "add set that exists with another type", want: exists, given: scenery, when: add(set("hosts", "ipv6_addr"))},
		{name: "add set that exists with other flags", want: exists, given: scenery,
			when: add(set("hosts", "ipv4_addr", knftables.IntervalFlag))},
		{name: "add set that exists with a size", want: done, given: scenery,
			when: add(&knftables.Set{Name: "hosts", Type: "ipv4_addr", Size: ptr[uint64](99)})},
		{name: "add set that exists with another comment", want: done, given: scenery,
			when: add(&knftables.Set{Name: "hosts", Type: "ipv4_addr", Comment: ptr("late")})},
		{name: "create set", want: done, given: scenery, when: create(set("s", "inet_service"))},
		{name: "create set that exists", want: exists, given: scenery, when: create(set("hosts", "ipv4_addr"))},
		{name: "flush set", want: done, given: scenery, when: flush(set("hosts", ""))},
		{name: "flush set that is not there", want: notFound, given: scenery, when: flush(set("none", ""))},
		{name: "flush and fill set", want: done, given: scenery, when: steps(
			flush(set("hosts", "")), add(member("hosts", "10.0.0.2"), member("hosts", "10.0.0.3")),
		)},
		{name: "delete set", want: done, given: scenery, when: remove(set("nets", ""))},
		{name: "delete set in use", want: refused, given: scenery, when: remove(set("hosts", ""))},
		{name: "delete set that is not there", want: notFound, given: scenery, when: remove(set("none", ""))},
		{name: "destroy set", want: done, given: scenery, when: destroy(set("nets", "ipv4_addr", knftables.IntervalFlag))},
		{name: "destroy set that is not there", want: done, given: scenery, when: destroy(set("none", "ipv4_addr"))},
		{name: "delete and add set with another type", want: done, given: scenery, when: steps(
			remove(set("nets", "")), add(set("nets", "inet_service"), member("nets", "443")),
		)},
	}
}

// mapUsages are those in which a map is not like a set.
func mapUsages() []usage {
	whole := &knftables.Map{
		Name: "m", Type: "ipv4_addr : ipv4_addr . inet_service", Flags: []knftables.SetFlag{knftables.TimeoutFlag}, Timeout: ptr(time.Hour),
		Size: ptr[uint64](10), Policy: ptr(knftables.PerformancePolicy), Comment: ptr("a map"),
	}
	typed := &knftables.Map{Name: "m", TypeOf: "ip daddr . meta l4proto . th dport : ip daddr . th dport"}
	return []usage{
		{name: "add map with all fields", want: done, when: add(table(), whole)},
		{name: "add map by typeof", want: done, when: add(table(), typed, &knftables.Element{
			Map: "m", Key: []string{"10.0.0.1", "udp", "53"}, Value: []string{"10.1.0.1", "5353"},
		})},
		{name: "add map that exists", want: done, given: scenery, when: add(mapping("ports", "ipv4_addr : inet_service"))},
		{name: "add map that is a set", want: exists, given: scenery, when: add(mapping("hosts", "ipv4_addr : inet_service"))},
		{name: "add map that exists with other data", want: exists, given: scenery, when: add(mapping("ports", "ipv4_addr : verdict"))},
		{name: "create map", want: done, given: scenery, when: create(mapping("m", "mark : verdict"))},
		{name: "flush map", want: done, given: scenery, when: flush(mapping("verdicts", ""))},
		{name: "delete map", want: done, given: scenery, when: remove(mapping("ports", ""))},
	}
}
