package knft_test

import (
	"sigs.k8s.io/knftables"
)

func ruleUsages() []usage {
	at := func(index int) *knftables.Rule {
		r := noted("base", "ip ttl 9 drop", "new")
		r.Index = &index
		return r
	}
	inEmpty := func(text string, index int) *knftables.Rule {
		return &knftables.Rule{Chain: "empty", Rule: text, Index: &index}
	}
	lost := &knftables.Rule{Chain: "base", Rule: "accept", Handle: ptr(99999)}
	return []usage{
		{name: "add rule", want: done, given: scenery, when: add(noted("base", "tcp dport 80 counter accept", "new"))},
		{name: "add rule with the comment in its text", want: done, given: scenery,
			when: add(rule("base", `tcp dport 80 accept comment "in the text"`))},
		{name: "add rule with a line break", want: done, given: scenery, when: add(rule("base", "tcp dport {\n 80,\n 443\n } accept"))},
		{name: "add rule with strings", want: done, given: scenery,
			when: add(rule("base", `iifname "lo" log prefix "jump none @none: " accept`))},
		{name: "add rule with a backslash in its comment", want: done, given: scenery, when: add(noted("base", "accept", `C:\weft`))},
		{name: "add rule with a quote in its comment", want: refused, given: scenery, when: add(noted("base", "accept", `say "hi"`))},
		{name: "add the same rule twice", want: done, given: scenery,
			when: add(rule("base", "tcp dport 80 accept"), rule("base", "tcp dport 80 accept"))},
		{name: "add rule to a chain that is not there", want: notFound, given: scenery, when: add(rule("none", "accept"))},
		{name: "add rule without table", want: notFound, when: add(rule("base", "accept"))},
		{name: "add rule that does not parse", want: refused, given: scenery, when: add(rule("base", "ip saddr frob"))},
		{name: "add no rule", want: refused, given: scenery, when: add(rule("base", ""))},
		{name: "insert two rules", want: done, given: scenery,
			when: insert(noted("base", "tcp dport 80 accept", "first"), noted("base", "tcp dport 81 accept", "second"))},
		{name: "add rule after an index", want: done, given: scenery, when: add(at(0))},
		{name: "insert rule before an index", want: done, given: scenery, when: insert(at(1))},
		{name: "add rule after the last index", want: done, given: scenery, when: add(at(2))},
		{name: "add rule after an index that is not there", want: notFound, given: scenery, when: add(at(3))},
		{name: "insert rule before an index that is not there", want: notFound, given: scenery, when: insert(at(3))},
		{name: "add rules after indexes of the same transaction", want: done, given: scenery, when: steps(
			add(noted("empty", "tcp dport 80 accept", "0"), noted("empty", "tcp dport 81 accept", "1"), noted("empty", "tcp dport 82 accept", "2")),
			add(inEmpty("tcp dport 90 accept", 1)),
			insert(inEmpty("tcp dport 91 accept", 3), inEmpty("tcp dport 92 accept", 0)),
		)},
		{name: "add rule after a handle", want: done, given: scenery, with: func(s *scene) step { return add(s.next("one")) }},
		{name: "insert rule before a handle", want: done, given: scenery, with: func(s *scene) step { return insert(s.next("three")) }},
		{name: "replace rule", want: done, given: scenery, with: func(s *scene) step { return replace(s.next("two")) }},
		{name: "delete rule", want: done, given: scenery, with: func(s *scene) step { return remove(s.rule("base", "two")) }},
		{name: "delete, insert and add around handles", want: done, given: scenery, with: func(s *scene) step {
			return steps(insert(s.next("one")), add(s.next("three")), remove(s.rule("base", "one")), add(s.next("three")))
		}},
		{name: "delete rule twice", want: notFound, given: scenery, with: func(s *scene) step {
			return remove(s.rule("base", "two"), s.rule("base", "two"))
		}},
		{name: "delete rule that is not there", want: notFound, given: scenery, when: remove(lost)},
		{name: "delete rule of another chain", want: notFound, given: scenery, with: func(s *scene) step {
			r := s.rule("base", "two")
			r.Chain = "plain"
			return remove(r)
		}},
		{name: "replace rule that is not there", want: notFound, given: scenery, when: replace(lost)},
		{name: "delete rule without a handle", want: refused, given: scenery, when: remove(rule("base", "ip saddr @hosts drop"))},
		{name: "flush chain and add some rules again", want: done, given: scenery, when: steps(
			flush(chain("base")),
			add(noted("base", "jump plain", "three"), noted("base", "ip saddr @hosts drop", "one")),
		)},
	}
}

func ruleReferenceUsages() []usage {
	seen := set("seen", "ipv4_addr", knftables.DynamicFlag)
	seen.Size = ptr[uint64](64)
	return []usage{
		{name: "jump to a chain that is not there", want: notFound, given: scenery, when: add(rule("base", "ip ttl 5 jump none"))},
		{name: "vmap to a chain that is not there", want: notFound, given: scenery,
			when: add(rule("base", "ip ttl vmap { 5 : goto plain, 6 : goto none }"))},
		{name: "look up in a set that is not there", want: notFound, given: scenery, when: add(rule("base", "ip saddr @none drop"))},
		{name: "look up in a map that is not there", want: notFound, given: scenery, when: add(rule("base", "ip saddr vmap @none"))},
		{name: "look up in a concatenation", want: done, given: scenery, when: add(
			&knftables.Set{Name: "pairs", TypeOf: "ip saddr . tcp dport"}, rule("base", "ip saddr . tcp dport @pairs drop"),
		)},
		{name: "rule before its chain", want: notFound, given: scenery, when: add(rule("base", "jump later"), chain("later"))},
		{name: "rule before its set", want: notFound, given: scenery, when: add(rule("base", "ip saddr @later drop"), set("later", "ipv4_addr"))},
		{name: "rule that updates a set", want: done, given: scenery, when: add(seen, rule("base", "add @seen { ip saddr }"))},
	}
}

func elementUsages() []usage {
	host := func(key string) *knftables.Element { return member("hosts", key) }
	commented := func(key, comment string) *knftables.Element {
		e := host(key)
		e.Comment = ptr(comment)
		return e
	}
	return []usage{
		{name: "add element", want: done, given: scenery, when: add(host("10.0.0.3"))},
		{name: "add element with a comment", want: done, given: scenery, when: add(commented("10.0.0.3", "a : b, c { d }"))},
		{name: "add element that exists", want: done, given: scenery, when: add(commented("10.0.0.1", "other"))},
		{name: "create element", want: done, given: scenery, when: create(host("10.0.0.3"))},
		{name: "create element that exists", want: exists, given: scenery, when: create(host("10.0.0.1"))},
		{name: "delete element", want: done, given: scenery, when: remove(host("10.0.0.1"))},
		{name: "delete element twice", want: notFound, given: scenery, when: remove(host("10.0.0.1"), host("10.0.0.1"))},
		{name: "delete and add element", want: done, given: scenery, when: steps(remove(host("10.0.0.1")), add(host("10.0.0.1")))},
		{name: "add element to a set that is not there", want: notFound, given: scenery, when: add(member("none", "10.0.0.1"))},
		{name: "delete element of a set that is not there", want: notFound, given: scenery, when: remove(member("none", "10.0.0.1"))},
		{name: "add element of the wrong type", want: refused, given: scenery, when: add(host("not-an-address.."))},
		{name: "add map element", want: done, given: scenery, when: add(pair("ports", "443", "10.0.0.2"))},
		{name: "add map element that exists in other words", want: done, given: scenery, when: add(pair("ports", "http", "10.0.0.1"))},
		{name: "add map element that exists with another value", want: exists, given: scenery, when: add(pair("ports", "81", "10.0.0.1"))},
		{name: "replace map element", want: done, given: scenery,
			when: steps(remove(pair("ports", "80", "10.0.0.1")), add(pair("ports", "81", "10.0.0.1")))},
		{name: "delete map element without its value", want: done, given: scenery,
			when: remove(&knftables.Element{Map: "ports", Key: []string{"10.0.0.1"}})},
		{name: "destroy map element", want: done, given: scenery, when: destroy(pair("ports", "80", "10.0.0.1"))},
		{name: "destroy element that is not there", want: done, given: scenery, when: destroy(host("10.0.0.9"))},
		{name: "add verdict", want: done, given: scenery,
			when: add(pair("verdicts", "jump plain", "10.0.0.1", "udp", "53"), pair("verdicts", "drop", "10.0.0.2", "udp", "53"))},
		{name: "add verdict to a chain that is not there", want: notFound, given: scenery,
			when: add(pair("verdicts", "goto none", "10.0.0.1", "udp", "53"))},
		{name: "delete verdict in other words", want: done, given: scenery,
			when: remove(&knftables.Element{Map: "verdicts", Key: []string{"10.0.0.1", "6", "http"}})},
		{name: "delete chain and the verdicts to it", want: done, given: scenery, when: steps(
			remove(&knftables.Element{Map: "verdicts", Key: []string{"10.0.0.1", "tcp", "80"}}),
			flush(chain("base")),
			remove(chain("plain")),
		)},
		{name: "add prefix", want: done, given: scenery, when: add(member("nets", "192.168.0.0/16"))},
		{name: "add prefix that exists", want: done, given: scenery, when: add(member("nets", "10.0.0.0/8"))},
		{name: "add prefix that overlaps", want: refused, given: scenery, when: add(member("nets", "10.1.0.0/16"))},
		{name: "delete prefix", want: done, given: scenery, when: remove(member("nets", "10.0.0.0/8"))},
		{name: "add elements of many types", want: done, given: scenery, when: add(
			set("ifs", "ifname"), member("ifs", `"eth0"`),
			set("macs", "ether_addr"), member("macs", "02:00:00:00:00:01"),
			mapping("marks", "mark : verdict"), pair("marks", "accept", "0x4000"),
			set("protos", "inet_proto . inet_service"), member("protos", "sctp", "https"),
			set("six", "ipv6_addr"), member("six", "FD00:0::1"),
		)},
	}
}
