package knft_test

import (
	"time"

	"sigs.k8s.io/knftables"
)

func ptr[T any](v T) *T { return &v }

// scenery is a table with one object of each kind.
func scenery(tx *knftables.Transaction) {
	tx.Add(&knftables.Table{Comment: ptr("scenery")})
	tx.Add(&knftables.Chain{Name: "base", Type: ptr(knftables.FilterType), Hook: ptr(knftables.InputHook), Priority: ptr(knftables.FilterPriority)})
	tx.Add(&knftables.Chain{Name: "plain"})
	tx.Add(&knftables.Chain{Name: "empty"})
	tx.Add(&knftables.Set{Name: "hosts", Type: "ipv4_addr"})
	tx.Add(&knftables.Set{Name: "nets", Type: "ipv4_addr", Flags: []knftables.SetFlag{knftables.IntervalFlag}})
	tx.Add(&knftables.Map{Name: "ports", Type: "ipv4_addr : inet_service"})
	tx.Add(&knftables.Map{Name: "verdicts", Type: "ipv4_addr . inet_proto . inet_service : verdict"})
	tx.Add(&knftables.Element{Set: "hosts", Key: []string{"10.0.0.1"}, Comment: ptr("first")})
	tx.Add(&knftables.Element{Set: "hosts", Key: []string{"10.0.0.2"}})
	tx.Add(&knftables.Element{Set: "nets", Key: []string{"10.0.0.0/8"}})
	tx.Add(&knftables.Element{Map: "ports", Key: []string{"10.0.0.1"}, Value: []string{"80"}})
	tx.Add(&knftables.Element{Map: "verdicts", Key: []string{"10.0.0.1", "tcp", "80"}, Value: []string{"goto plain"}})
	tx.Add(&knftables.Rule{Chain: "base", Rule: "ip saddr @hosts drop", Comment: ptr("one")})
	tx.Add(&knftables.Rule{Chain: "base", Rule: "ip saddr . ip protocol . th dport vmap @verdicts", Comment: ptr("two")})
	tx.Add(&knftables.Rule{Chain: "base", Rule: "jump plain", Comment: ptr("three")})
	tx.Add(&knftables.Rule{Chain: "plain", Rule: "return", Comment: ptr("four")})
}

// only wraps a transaction that does not need the scene.
func only(f func(tx *knftables.Transaction)) func(*scene, *knftables.Transaction) {
	return func(_ *scene, tx *knftables.Transaction) { f(tx) }
}

func base(name string, typ knftables.BaseChainType, hook knftables.BaseChainHook, priority knftables.BaseChainPriority) *knftables.Chain {
	return &knftables.Chain{Name: name, Type: ptr(typ), Hook: ptr(hook), Priority: ptr(priority)}
}

func usages() []usage {
	var all []usage
	for _, group := range [][]usage{tableUsages(), chainUsages(), ruleUsages(), ruleReferenceUsages(), setUsages(), mapUsages(), elementUsages(), programUsages()} {
		all = append(all, group...)
	}
	return all
}

func tableUsages() []usage {
	add := func(tx *knftables.Transaction) { tx.Add(&knftables.Table{}) }
	return []usage{
		{name: "add table", want: done, when: only(add)},
		{name: "add table with a comment", want: done, when: only(func(tx *knftables.Transaction) {
			tx.Add(&knftables.Table{Comment: ptr("a table; it is { mine }")})
		})},
		{name: "add table that exists", want: done, given: scenery, when: only(add)},
		{name: "create table", want: done, when: only(func(tx *knftables.Transaction) { tx.Create(&knftables.Table{}) })},
		{name: "create table that exists", want: exists, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Create(&knftables.Table{}) })},
		{name: "delete table", want: done, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Delete(&knftables.Table{}) })},
		{name: "delete table that is not there", want: notFound, when: only(func(tx *knftables.Transaction) { tx.Delete(&knftables.Table{}) })},
		{name: "destroy table", want: done, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Destroy(&knftables.Table{}) })},
		{name: "destroy table that is not there", want: done, when: only(func(tx *knftables.Transaction) { tx.Destroy(&knftables.Table{}) })},
		{name: "flush table", want: done, given: scenery, fake: "it empties sets too, and forgets chains",
			when: only(func(tx *knftables.Transaction) { tx.Flush(&knftables.Table{}) })},
		{name: "flush table that is not there", want: notFound, when: only(func(tx *knftables.Transaction) { tx.Flush(&knftables.Table{}) })},
		{name: "add, delete, add table", want: done, given: scenery, when: only(func(tx *knftables.Transaction) {
			tx.Add(&knftables.Table{})
			tx.Delete(&knftables.Table{})
			tx.Add(&knftables.Table{Comment: ptr("scenery")})
			tx.Add(&knftables.Chain{Name: "new"})
		})},
		{name: "ip6 table", family: knftables.IPv6Family, want: done, when: only(func(tx *knftables.Transaction) {
			tx.Add(&knftables.Table{})
			tx.Add(base("in", knftables.FilterType, knftables.InputHook, knftables.FilterPriority))
			tx.Add(&knftables.Set{Name: "hosts", Type: "ipv6_addr"})
			tx.Add(&knftables.Element{Set: "hosts", Key: []string{"fd00::1"}, Comment: ptr("six")})
			tx.Add(&knftables.Rule{Chain: "in", Rule: "ip6 saddr @hosts accept"})
		})},
		{name: "inet table", family: knftables.InetFamily, want: done, when: only(func(tx *knftables.Transaction) {
			tx.Add(&knftables.Table{})
			tx.Add(base("in", knftables.FilterType, knftables.InputHook, knftables.FilterPriority))
			tx.Add(&knftables.Rule{Chain: "in", Rule: "tcp dport { 22, 80 } accept"})
		})},
		{name: "bridge table", family: knftables.BridgeFamily, want: done, when: only(func(tx *knftables.Transaction) {
			tx.Add(&knftables.Table{})
			tx.Add(base("bridged", knftables.FilterType, knftables.ForwardHook, knftables.FilterPriority))
			tx.Add(&knftables.Rule{Chain: "bridged", Rule: "meta mark 0x1 drop"})
		})},
		{name: "netdev table", family: knftables.NetDevFamily, want: done, when: only(func(tx *knftables.Transaction) {
			tx.Add(&knftables.Table{})
			c := base("in", knftables.FilterType, knftables.IngressHook, knftables.FilterPriority)
			c.Device = ptr("lo")
			tx.Add(c)
			tx.Add(&knftables.Rule{Chain: "in", Rule: "ip saddr 192.0.2.1 drop"})
		})},
		{name: "arp table", family: knftables.ARPFamily, want: done, when: only(func(tx *knftables.Transaction) {
			tx.Add(&knftables.Table{})
			tx.Add(base("in", knftables.FilterType, knftables.InputHook, knftables.FilterPriority))
			tx.Add(&knftables.Rule{Chain: "in", Rule: `iifname "eth0" accept`})
		})},
	}
}

func chainUsages() []usage {
	drop := base("base", knftables.FilterType, knftables.InputHook, knftables.FilterPriority)
	drop.Policy = ptr(knftables.DropPolicy)
	named := func(c *knftables.Chain) func(tx *knftables.Transaction) {
		return func(tx *knftables.Transaction) {
			tx.Add(&knftables.Table{})
			tx.Add(c)
		}
	}
	commented := base("c", knftables.NATType, knftables.PreroutingHook, knftables.DNATPriority)
	commented.Comment, commented.Policy = ptr("to backends"), ptr(knftables.AcceptPolicy)
	const silent = "it does not look at what is there"
	return []usage{
		{name: "add chain", want: done, when: only(named(&knftables.Chain{Name: "c"}))},
		{name: "add chain with a comment", want: done, when: only(named(&knftables.Chain{Name: "c", Comment: ptr("no hook")}))},
		{name: "add base chain with all fields", want: done, when: only(named(commented))},
		{name: "add base chain at a priority by name and offset", want: done, when: only(named(base("c", knftables.FilterType, knftables.ForwardHook, "mangle+7")))},
		{name: "add base chain at a priority by number", want: done, when: only(named(base("c", knftables.FilterType, knftables.OutputHook, "-42")))},
		{name: "add nat chain at dstnat in output", want: done, when: only(named(base("c", knftables.NATType, knftables.OutputHook, knftables.DNATPriority)))},
		{name: "add chain with a name of kube-proxy's", want: done, when: only(named(&knftables.Chain{Name: "service-ULMVA6XW-ns1/svc1/tcp/p80"}))},
		{name: "add chain without table", want: notFound, when: only(func(tx *knftables.Transaction) { tx.Add(&knftables.Chain{Name: "c"}) })},
		{name: "add chain that exists", want: done, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Add(&knftables.Chain{Name: "plain"}) })},
		{name: "add base chain that exists without its hook", want: done, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Add(&knftables.Chain{Name: "base"}) })},
		{name: "add base chain that exists with another policy", want: done, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Add(drop) })},
		{name: "add base chain that exists at another priority", want: refused, given: scenery, fake: silent,
			when: only(func(tx *knftables.Transaction) { tx.Add(base("base", knftables.FilterType, knftables.InputHook, "5")) })},
		{name: "add base chain that exists with another type", want: exists, given: scenery, fake: silent,
			when: only(func(tx *knftables.Transaction) { tx.Add(base("base", knftables.NATType, knftables.InputHook, "0")) })},
		{name: "add hook to a chain that exists", want: exists, given: scenery, fake: silent,
			when: only(func(tx *knftables.Transaction) { tx.Add(base("plain", knftables.FilterType, knftables.InputHook, "0")) })},
		{name: "create chain", want: done, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Create(&knftables.Chain{Name: "c"}) })},
		{name: "create chain that exists", want: exists, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Create(&knftables.Chain{Name: "plain"}) })},
		{name: "flush chain", want: done, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Flush(&knftables.Chain{Name: "base"}) })},
		{name: "flush chain that is not there", want: notFound, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Flush(&knftables.Chain{Name: "none"}) })},
		{name: "delete chain", want: done, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Delete(&knftables.Chain{Name: "empty"}) })},
		{name: "delete chain with rules", want: done, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Delete(&knftables.Chain{Name: "base"}) })},
		{name: "delete chain in use", want: refused, given: scenery, fake: silent,
			when: only(func(tx *knftables.Transaction) { tx.Delete(&knftables.Chain{Name: "plain"}) })},
		{name: "delete chain that is not there", want: notFound, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Delete(&knftables.Chain{Name: "none"}) })},
		{name: "delete chain twice", want: notFound, given: scenery, when: only(func(tx *knftables.Transaction) {
			tx.Delete(&knftables.Chain{Name: "empty"})
			tx.Delete(&knftables.Chain{Name: "empty"})
		})},
		{name: "destroy chain", want: done, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Destroy(&knftables.Chain{Name: "empty"}) })},
		{name: "destroy chain that is not there", want: done, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Destroy(&knftables.Chain{Name: "none"}) })},
		{name: "delete and add chain with another hook", want: done, given: scenery, when: only(func(tx *knftables.Transaction) {
			tx.Delete(&knftables.Chain{Name: "base"})
			tx.Add(base("base", knftables.FilterType, knftables.OutputHook, "raw"))
			tx.Add(&knftables.Rule{Chain: "base", Rule: "accept", Comment: ptr("new")})
		})},
		{name: "add chain without a name", want: refused, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Add(&knftables.Chain{}) })},
	}
}

func setUsages() []usage {
	set := func(s knftables.Set) func(tx *knftables.Transaction) {
		return func(tx *knftables.Transaction) {
			s.Name = "s"
			tx.Add(&knftables.Table{})
			tx.Add(&s)
		}
	}
	with := func(f func(tx *knftables.Transaction)) func(*scene, *knftables.Transaction) { return only(f) }
	const silent = "it does not look at what is there"
	return []usage{
		{name: "add set", want: done, when: only(set(knftables.Set{Type: "ipv4_addr"}))},
		{name: "add set with all fields", want: done, when: only(set(knftables.Set{
			Type: "ipv4_addr", Flags: []knftables.SetFlag{knftables.TimeoutFlag}, Timeout: ptr(time.Hour), GCInterval: ptr(time.Minute),
			Size: ptr[uint64](1000), Policy: ptr(knftables.MemoryPolicy), Comment: ptr("a set"),
		}))},
		{name: "add set by typeof", want: done, when: only(set(knftables.Set{TypeOf: "ip saddr . tcp dport"}))},
		{name: "add set of intervals that are merged", want: done, when: only(set(knftables.Set{
			Type: "ipv4_addr", Flags: []knftables.SetFlag{knftables.IntervalFlag}, AutoMerge: ptr(true),
		}))},
		{name: "add dynamic set", want: done, when: only(set(knftables.Set{
			Type: "ipv4_addr", Flags: []knftables.SetFlag{knftables.DynamicFlag, knftables.TimeoutFlag}, Timeout: ptr(time.Minute), Size: ptr[uint64](100),
		}))},
		{name: "add set of an unknown type", want: refused, fake: silent, when: only(set(knftables.Set{Type: "frobs"}))},
		{name: "add set without table", want: notFound, when: with(func(tx *knftables.Transaction) { tx.Add(&knftables.Set{Name: "s", Type: "ipv4_addr"}) })},
		{name: "add set that exists", want: done, given: scenery, when: with(func(tx *knftables.Transaction) { tx.Add(&knftables.Set{Name: "hosts", Type: "ipv4_addr"}) })},
		{name: "add set that exists with another type", want: exists, given: scenery, fake: silent,
			when: with(func(tx *knftables.Transaction) { tx.Add(&knftables.Set{Name: "hosts", Type: "ipv6_addr"}) })},
		{name: "add set that exists with other flags", want: exists, given: scenery, fake: silent,
			when: with(func(tx *knftables.Transaction) {
				tx.Add(&knftables.Set{Name: "hosts", Type: "ipv4_addr", Flags: []knftables.SetFlag{knftables.IntervalFlag}})
			})},
		{name: "add set that exists with a size", want: done, given: scenery,
			when: with(func(tx *knftables.Transaction) {
				tx.Add(&knftables.Set{Name: "hosts", Type: "ipv4_addr", Size: ptr[uint64](99)})
			})},
		{name: "add set that exists with another comment", want: done, given: scenery,
			when: with(func(tx *knftables.Transaction) {
				tx.Add(&knftables.Set{Name: "hosts", Type: "ipv4_addr", Comment: ptr("late")})
			})},
		{name: "create set", want: done, given: scenery, when: with(func(tx *knftables.Transaction) { tx.Create(&knftables.Set{Name: "s", Type: "inet_service"}) })},
		{name: "create set that exists", want: exists, given: scenery, when: with(func(tx *knftables.Transaction) { tx.Create(&knftables.Set{Name: "hosts", Type: "ipv4_addr"}) })},
		{name: "flush set", want: done, given: scenery, when: with(func(tx *knftables.Transaction) { tx.Flush(&knftables.Set{Name: "hosts"}) })},
		{name: "flush set that is not there", want: notFound, given: scenery, when: with(func(tx *knftables.Transaction) { tx.Flush(&knftables.Set{Name: "none"}) })},
		{name: "flush and fill set", want: done, given: scenery, when: with(func(tx *knftables.Transaction) {
			tx.Flush(&knftables.Set{Name: "hosts"})
			tx.Add(&knftables.Element{Set: "hosts", Key: []string{"10.0.0.2"}})
			tx.Add(&knftables.Element{Set: "hosts", Key: []string{"10.0.0.3"}})
		})},
		{name: "delete set", want: done, given: scenery, when: with(func(tx *knftables.Transaction) { tx.Delete(&knftables.Set{Name: "nets"}) })},
		{name: "delete set in use", want: refused, given: scenery, fake: silent,
			when: with(func(tx *knftables.Transaction) { tx.Delete(&knftables.Set{Name: "hosts"}) })},
		{name: "delete set that is not there", want: notFound, given: scenery, when: with(func(tx *knftables.Transaction) { tx.Delete(&knftables.Set{Name: "none"}) })},
		{name: "destroy set", want: done, given: scenery, when: with(func(tx *knftables.Transaction) {
			tx.Destroy(&knftables.Set{Name: "nets", Type: "ipv4_addr", Flags: []knftables.SetFlag{knftables.IntervalFlag}})
		})},
		{name: "destroy set that is not there", want: done, given: scenery, when: with(func(tx *knftables.Transaction) { tx.Destroy(&knftables.Set{Name: "none", Type: "ipv4_addr"}) })},
		{name: "delete and add set with another type", want: done, given: scenery, when: with(func(tx *knftables.Transaction) {
			tx.Delete(&knftables.Set{Name: "nets"})
			tx.Add(&knftables.Set{Name: "nets", Type: "inet_service"})
			tx.Add(&knftables.Element{Set: "nets", Key: []string{"443"}})
		})},
	}
}

func mapUsages() []usage {
	return []usage{
		{name: "add map with all fields", want: done, when: only(func(tx *knftables.Transaction) {
			tx.Add(&knftables.Table{})
			tx.Add(&knftables.Map{
				Name: "m", Type: "ipv4_addr : ipv4_addr . inet_service", Flags: []knftables.SetFlag{knftables.TimeoutFlag}, Timeout: ptr(time.Hour),
				Size: ptr[uint64](10), Policy: ptr(knftables.PerformancePolicy), Comment: ptr("a map"),
			})
		})},
		{name: "add map by typeof", want: done, when: only(func(tx *knftables.Transaction) {
			tx.Add(&knftables.Table{})
			tx.Add(&knftables.Map{Name: "m", TypeOf: "ip daddr . meta l4proto . th dport : ip daddr . th dport"})
			tx.Add(&knftables.Element{Map: "m", Key: []string{"10.0.0.1", "udp", "53"}, Value: []string{"10.1.0.1", "5353"}})
		})},
		{name: "add map that exists", want: done, given: scenery, when: only(func(tx *knftables.Transaction) {
			tx.Add(&knftables.Map{Name: "ports", Type: "ipv4_addr : inet_service"})
		})},
		{name: "add map that is a set", want: exists, given: scenery, fake: "it keeps sets and maps apart", when: only(func(tx *knftables.Transaction) {
			tx.Add(&knftables.Map{Name: "hosts", Type: "ipv4_addr : inet_service"})
		})},
		{name: "add map that exists with other data", want: exists, given: scenery, fake: "it does not look at what is there", when: only(func(tx *knftables.Transaction) {
			tx.Add(&knftables.Map{Name: "ports", Type: "ipv4_addr : verdict"})
		})},
		{name: "create map", want: done, given: scenery, fake: "it has no create for maps", when: only(func(tx *knftables.Transaction) {
			tx.Create(&knftables.Map{Name: "m", Type: "mark : verdict"})
		})},
		{name: "create map that exists", want: exists, given: scenery, when: only(func(tx *knftables.Transaction) {
			tx.Create(&knftables.Map{Name: "ports", Type: "ipv4_addr : inet_service"})
		})},
		{name: "flush map", want: done, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Flush(&knftables.Map{Name: "verdicts"}) })},
		{name: "flush map that is not there", want: notFound, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Flush(&knftables.Map{Name: "none"}) })},
		{name: "delete map", want: done, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Delete(&knftables.Map{Name: "ports"}) })},
		{name: "delete map that is not there", want: notFound, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Delete(&knftables.Map{Name: "none"}) })},
		{name: "delete map in use", want: refused, given: scenery, fake: "it does not look at what is there", when: only(func(tx *knftables.Transaction) {
			tx.Delete(&knftables.Map{Name: "verdicts"})
		})},
		{name: "destroy map", want: done, given: scenery, when: only(func(tx *knftables.Transaction) {
			tx.Destroy(&knftables.Map{Name: "ports", Type: "ipv4_addr : inet_service"})
		})},
	}
}
