package knft_test

import (
	"fmt"

	"sigs.k8s.io/knftables"
)

func ruleUsages() []usage {
	rule := func(text string) *knftables.Rule {
		return &knftables.Rule{Chain: "base", Rule: text, Comment: ptr("new")}
	}
	at := func(index int) *knftables.Rule {
		r := rule("ip ttl 9 drop")
		r.Index = &index
		return r
	}
	by := func(s *scene, comment string) *knftables.Rule {
		r := rule("ip ttl 9 drop")
		r.Handle = s.handle("base", comment)
		return r
	}
	return []usage{
		{name: "add rule", want: done, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Add(rule("tcp dport 80 counter accept")) })},
		{name: "add rule without a comment", want: done, given: scenery, when: only(func(tx *knftables.Transaction) {
			tx.Add(&knftables.Rule{Chain: "base", Rule: "tcp dport 80 accept"})
		})},
		{name: "add rule with the comment in its text", want: done, given: scenery, fake: "it does not read the text", when: only(func(tx *knftables.Transaction) {
			tx.Add(&knftables.Rule{Chain: "base", Rule: `tcp dport 80 accept comment "in the text"`})
		})},
		{name: "add rule with a line break", want: done, given: scenery, when: only(func(tx *knftables.Transaction) {
			tx.Add(rule("tcp dport {\n 80,\n 443\n } accept"))
		})},
		{name: "add rule with strings", want: done, given: scenery, fake: "it looks for names in strings", when: only(func(tx *knftables.Transaction) {
			tx.Add(rule(`iifname "lo" log prefix "jump none @none: " accept`))
		})},
		{name: "add rule with a backslash in its comment", want: done, given: scenery, fake: "it keeps the comment as it is given", when: only(func(tx *knftables.Transaction) {
			tx.Add(&knftables.Rule{Chain: "base", Rule: "accept", Comment: ptr(`C:\weft`)})
		})},
		{name: "add rule with a quote in its comment", want: refused, given: scenery, fake: "it keeps the comment as it is given", when: only(func(tx *knftables.Transaction) {
			tx.Add(&knftables.Rule{Chain: "base", Rule: "accept", Comment: ptr(`say "hi"`)})
		})},
		{name: "add the same rule twice", want: done, given: scenery, when: only(func(tx *knftables.Transaction) {
			tx.Add(rule("tcp dport 80 accept"))
			tx.Add(rule("tcp dport 80 accept"))
		})},
		{name: "add rule to a chain that is not there", want: notFound, given: scenery, when: only(func(tx *knftables.Transaction) {
			tx.Add(&knftables.Rule{Chain: "none", Rule: "accept"})
		})},
		{name: "add rule without table", want: notFound, when: only(func(tx *knftables.Transaction) { tx.Add(rule("accept")) })},
		{name: "add rule that does not parse", want: refused, given: scenery, fake: "it does not read the text", when: only(func(tx *knftables.Transaction) { tx.Add(rule("ip saddr frob")) })},
		{name: "add no rule", want: refused, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Add(&knftables.Rule{Chain: "base"}) })},
		{name: "insert rule", want: done, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Insert(rule("tcp dport 80 accept")) })},
		{name: "insert two rules", want: done, given: scenery, when: only(func(tx *knftables.Transaction) {
			tx.Insert(&knftables.Rule{Chain: "base", Rule: "tcp dport 80 accept", Comment: ptr("inserted first")})
			tx.Insert(&knftables.Rule{Chain: "base", Rule: "tcp dport 81 accept", Comment: ptr("inserted second")})
		})},
		{name: "add rule after an index", want: done, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Add(at(0)) })},
		{name: "insert rule before an index", want: done, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Insert(at(1)) })},
		{name: "add rule after the last index", want: done, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Add(at(2)) })},
		{name: "add rule after an index that is not there", want: notFound, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Add(at(3)) })},
		{name: "insert rule before an index that is not there", want: notFound, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Insert(at(3)) })},
		{name: "add rules after indexes of the same transaction", want: done, given: scenery, when: only(func(tx *knftables.Transaction) {
			for i := range 3 {
				tx.Add(&knftables.Rule{Chain: "empty", Rule: fmt.Sprintf("tcp dport %d accept", 80+i), Comment: ptr(fmt.Sprint(i))})
			}
			tx.Add(&knftables.Rule{Chain: "empty", Rule: "tcp dport 90 accept", Comment: ptr("after 1"), Index: ptr(1)})
			tx.Insert(&knftables.Rule{Chain: "empty", Rule: "tcp dport 91 accept", Comment: ptr("before 3"), Index: ptr(3)})
			tx.Insert(&knftables.Rule{Chain: "empty", Rule: "tcp dport 92 accept", Comment: ptr("before 0"), Index: ptr(0)})
		})},
		{name: "add rule after a handle", want: done, given: scenery, when: func(s *scene, tx *knftables.Transaction) { tx.Add(by(s, "one")) }},
		{name: "insert rule before a handle", want: done, given: scenery, when: func(s *scene, tx *knftables.Transaction) { tx.Insert(by(s, "three")) }},
		{name: "replace rule", want: done, given: scenery, when: func(s *scene, tx *knftables.Transaction) { tx.Replace(by(s, "two")) }},
		{name: "delete rule", want: done, given: scenery, when: func(s *scene, tx *knftables.Transaction) {
			tx.Delete(&knftables.Rule{Chain: "base", Handle: s.handle("base", "two")})
		}},
		{name: "delete, insert and add around handles", want: done, given: scenery, when: func(s *scene, tx *knftables.Transaction) {
			one, three := s.handle("base", "one"), s.handle("base", "three")
			tx.Insert(&knftables.Rule{Chain: "base", Rule: "tcp dport 1 accept", Comment: ptr("before one"), Handle: one})
			tx.Add(&knftables.Rule{Chain: "base", Rule: "tcp dport 2 accept", Comment: ptr("after three"), Handle: three})
			tx.Delete(&knftables.Rule{Chain: "base", Handle: one})
			tx.Add(&knftables.Rule{Chain: "base", Rule: "tcp dport 3 accept", Comment: ptr("next to three"), Handle: three})
		}},
		{name: "delete rule twice", want: notFound, given: scenery, when: func(s *scene, tx *knftables.Transaction) {
			tx.Delete(&knftables.Rule{Chain: "base", Handle: s.handle("base", "two")})
			tx.Delete(&knftables.Rule{Chain: "base", Handle: s.handle("base", "two")})
		}},
		{name: "delete rule that is not there", want: notFound, given: scenery, when: only(func(tx *knftables.Transaction) {
			tx.Delete(&knftables.Rule{Chain: "base", Handle: ptr(99999)})
		})},
		{name: "delete rule of another chain", want: notFound, given: scenery, when: func(s *scene, tx *knftables.Transaction) {
			tx.Delete(&knftables.Rule{Chain: "plain", Handle: s.handle("base", "two")})
		}},
		{name: "replace rule that is not there", want: notFound, given: scenery, when: only(func(tx *knftables.Transaction) {
			tx.Replace(&knftables.Rule{Chain: "base", Rule: "accept", Handle: ptr(99999)})
		})},
		{name: "delete rule without a handle", want: refused, given: scenery, when: only(func(tx *knftables.Transaction) {
			tx.Delete(&knftables.Rule{Chain: "base", Rule: "ip saddr @hosts drop"})
		})},
		{name: "flush chain and add some rules again", want: done, given: scenery, when: only(func(tx *knftables.Transaction) {
			tx.Flush(&knftables.Chain{Name: "base"})
			tx.Add(&knftables.Rule{Chain: "base", Rule: "jump plain", Comment: ptr("three")})
			tx.Add(&knftables.Rule{Chain: "base", Rule: "ip saddr @hosts drop", Comment: ptr("one")})
		})},
	}
}

func ruleReferenceUsages() []usage {
	add := func(text string) func(tx *knftables.Transaction) {
		return func(tx *knftables.Transaction) { tx.Add(&knftables.Rule{Chain: "base", Rule: text}) }
	}
	return []usage{
		{name: "jump to a chain that is not there", want: notFound, given: scenery, when: only(add("ip ttl 5 jump none"))},
		{name: "vmap to a chain that is not there", want: notFound, given: scenery, fake: "it reads words between blanks",
			when: only(add("ip ttl vmap { 5 : goto plain, 6 : goto none }"))},
		{name: "look up in a set that is not there", want: notFound, given: scenery, when: only(add("ip saddr @none drop"))},
		{name: "look up in a map that is not there", want: notFound, given: scenery, when: only(add("ip saddr vmap @none"))},
		{name: "look up in a concatenation", want: done, given: scenery, when: only(func(tx *knftables.Transaction) {
			tx.Add(&knftables.Set{Name: "pairs", TypeOf: "ip saddr . tcp dport"})
			add("ip saddr . tcp dport @pairs drop")(tx)
		})},
		{name: "rule before its chain", want: notFound, given: scenery, when: only(func(tx *knftables.Transaction) {
			add("jump later")(tx)
			tx.Add(&knftables.Chain{Name: "later"})
		})},
		{name: "rule before its set", want: notFound, given: scenery, when: only(func(tx *knftables.Transaction) {
			add("ip saddr @later drop")(tx)
			tx.Add(&knftables.Set{Name: "later", Type: "ipv4_addr"})
		})},
		{name: "rule that updates a set", want: done, given: scenery, when: only(func(tx *knftables.Transaction) {
			tx.Add(&knftables.Set{Name: "seen", Type: "ipv4_addr", Flags: []knftables.SetFlag{knftables.DynamicFlag}, Size: ptr[uint64](64)})
			add("add @seen { ip saddr }")(tx)
		}), fake: "it takes add for a flowtable"},
	}
}

func elementUsages() []usage {
	host := func(key string) *knftables.Element { return &knftables.Element{Set: "hosts", Key: []string{key}} }
	port := func(key, value string) *knftables.Element {
		return &knftables.Element{Map: "ports", Key: []string{key}, Value: []string{value}}
	}
	verdict := func(value string, key ...string) *knftables.Element {
		return &knftables.Element{Map: "verdicts", Key: key, Value: []string{value}}
	}
	const literal = "it compares keys as text"
	return []usage{
		{name: "add element", want: done, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Add(host("10.0.0.3")) })},
		{name: "add element with a comment", want: done, given: scenery, when: only(func(tx *knftables.Transaction) {
			e := host("10.0.0.3")
			e.Comment = ptr("a : b, c { d }")
			tx.Add(e)
		})},
		{name: "add element that exists", want: done, given: scenery, fake: "it replaces the comment", when: only(func(tx *knftables.Transaction) {
			e := host("10.0.0.1")
			e.Comment = ptr("other")
			tx.Add(e)
		})},
		{name: "create element", want: done, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Create(host("10.0.0.3")) })},
		{name: "create element that exists", want: exists, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Create(host("10.0.0.1")) })},
		{name: "delete element", want: done, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Delete(host("10.0.0.1")) })},
		{name: "delete element that is not there", want: notFound, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Delete(host("10.0.0.9")) })},
		{name: "delete element twice", want: notFound, given: scenery, when: only(func(tx *knftables.Transaction) {
			tx.Delete(host("10.0.0.1"))
			tx.Delete(host("10.0.0.1"))
		})},
		{name: "delete and add element", want: done, given: scenery, when: only(func(tx *knftables.Transaction) {
			tx.Delete(host("10.0.0.1"))
			tx.Add(host("10.0.0.1"))
		})},
		{name: "add element to a set that is not there", want: notFound, given: scenery, when: only(func(tx *knftables.Transaction) {
			tx.Add(&knftables.Element{Set: "none", Key: []string{"10.0.0.1"}})
		})},
		{name: "delete element of a set that is not there", want: notFound, given: scenery, when: only(func(tx *knftables.Transaction) {
			tx.Delete(&knftables.Element{Set: "none", Key: []string{"10.0.0.1"}})
		})},
		{name: "add element of the wrong type", want: refused, given: scenery, fake: "it does not read keys", when: only(func(tx *knftables.Transaction) { tx.Add(host("not-an-address..")) })},
		{name: "add map element", want: done, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Add(port("10.0.0.2", "443")) })},
		{name: "add map element that exists", want: done, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Add(port("10.0.0.1", "80")) })},
		{name: "add map element that exists in other words", want: done, given: scenery, fake: literal, when: only(func(tx *knftables.Transaction) { tx.Add(port("10.0.0.1", "http")) })},
		{name: "add map element that exists with another value", want: exists, given: scenery, fake: "it replaces the value",
			when: only(func(tx *knftables.Transaction) { tx.Add(port("10.0.0.1", "81")) })},
		{name: "replace map element", want: done, given: scenery, when: only(func(tx *knftables.Transaction) {
			tx.Delete(port("10.0.0.1", "80"))
			tx.Add(port("10.0.0.1", "81"))
		})},
		{name: "delete map element without its value", want: done, given: scenery, when: only(func(tx *knftables.Transaction) {
			tx.Delete(&knftables.Element{Map: "ports", Key: []string{"10.0.0.1"}})
		})},
		{name: "destroy map element", want: done, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Destroy(port("10.0.0.1", "80")) })},
		{name: "destroy element that is not there", want: done, given: scenery, when: only(func(tx *knftables.Transaction) { tx.Destroy(host("10.0.0.9")) })},
		{name: "add verdict", want: done, given: scenery, when: only(func(tx *knftables.Transaction) {
			tx.Add(verdict("jump plain", "10.0.0.1", "udp", "53"))
			tx.Add(verdict("drop", "10.0.0.2", "udp", "53"))
		})},
		{name: "add verdict to a chain that is not there", want: notFound, given: scenery,
			when: only(func(tx *knftables.Transaction) { tx.Add(verdict("goto none", "10.0.0.1", "udp", "53")) })},
		{name: "delete verdict in other words", want: done, given: scenery, fake: literal, when: only(func(tx *knftables.Transaction) {
			tx.Delete(&knftables.Element{Map: "verdicts", Key: []string{"10.0.0.1", "6", "http"}})
		})},
		{name: "delete chain and the verdicts to it", want: done, given: scenery, when: only(func(tx *knftables.Transaction) {
			tx.Delete(&knftables.Element{Map: "verdicts", Key: []string{"10.0.0.1", "tcp", "80"}})
			tx.Flush(&knftables.Chain{Name: "base"})
			tx.Delete(&knftables.Chain{Name: "plain"})
		})},
		{name: "add prefix", want: done, given: scenery, when: only(func(tx *knftables.Transaction) {
			tx.Add(&knftables.Element{Set: "nets", Key: []string{"192.168.0.0/16"}, Comment: ptr("home")})
		})},
		{name: "add prefix that exists", want: done, given: scenery, when: only(func(tx *knftables.Transaction) {
			tx.Add(&knftables.Element{Set: "nets", Key: []string{"10.0.0.0/8"}})
		})},
		{name: "add prefix that overlaps", want: refused, given: scenery, fake: literal, when: only(func(tx *knftables.Transaction) {
			tx.Add(&knftables.Element{Set: "nets", Key: []string{"10.1.0.0/16"}})
		})},
		{name: "delete prefix", want: done, given: scenery, when: only(func(tx *knftables.Transaction) {
			tx.Delete(&knftables.Element{Set: "nets", Key: []string{"10.0.0.0/8"}})
		})},
		{name: "add elements of many types", want: done, given: scenery, when: only(func(tx *knftables.Transaction) {
			tx.Add(&knftables.Set{Name: "ifs", Type: "ifname"})
			tx.Add(&knftables.Element{Set: "ifs", Key: []string{`"eth0"`}})
			tx.Add(&knftables.Set{Name: "macs", Type: "ether_addr"})
			tx.Add(&knftables.Element{Set: "macs", Key: []string{"02:00:00:00:00:01"}})
			tx.Add(&knftables.Map{Name: "marks", Type: "mark : verdict"})
			tx.Add(&knftables.Element{Map: "marks", Key: []string{"0x4000"}, Value: []string{"accept"}})
			tx.Add(&knftables.Set{Name: "protos", Type: "inet_proto . inet_service"})
			tx.Add(&knftables.Element{Set: "protos", Key: []string{"sctp", "https"}})
			tx.Add(&knftables.Set{Name: "six", Type: "ipv6_addr"})
			tx.Add(&knftables.Element{Set: "six", Key: []string{"FD00:0::1"}})
		}), fake: literal},
	}
}
