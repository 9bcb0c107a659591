package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// The tables that publishers share. Each also has one of its own.
const (
	sharedTable  = "ip shared"
	commonTable  = "inet common"
	serviceTable = "ip svc"
)

// The address of the service that the stream goes through, and its backend.
const (
	serviceKey   = "10.96.0.1 . tcp . 80"
	serviceValue = "192.168.78.2 . 8080"
)

// serviceRule is what leads from an address to a backend.
const serviceRule = "dnat ip to ip daddr . meta l4proto . th dport map @services"

var comments = []string{"red", "green", "blue"}

// author writes contents of one fragment at random.
type author struct {
	*rand.Rand
	f *fragment
}

// change returns another content: the old one with some edits, seldom a new one,
// and seldom with another priority or lifetime.
func (a author) change(old *content) *content {
	var c *content
	if old == nil || a.IntN(12) == 0 {
		c = &content{tables: make(map[string]*table), priority: int32(a.IntN(5) - 2), lifetime: a.lifetime()}
	} else {
		c = old.clone()
	}
	if a.f.service {
		a.service(c)
	}
	if t := c.tables[a.f.own]; t != nil && a.IntN(3) > 0 {
		delete(t.sets, "large")
	}
	switch a.IntN(14) {
	case 0:
		c.priority = int32(a.IntN(5) - 2)
	case 1:
		c.lifetime = a.lifetime()
	}
	for range 1 + a.IntN(4) {
		a.edit(c)
	}
	a.mend(c)
	return c
}

// lifetime draws one that the fragment may have.
func (a author) lifetime() weftv1.Lifetime {
	switch {
	case a.f.sticky:
		return weftv1.Lifetime_LIFETIME_STICKY
	case a.f.unary:
		return []weftv1.Lifetime{weftv1.Lifetime_LIFETIME_STICKY, weftv1.Lifetime_LIFETIME_DURABLE}[a.IntN(2)]
	default:
		return []weftv1.Lifetime{weftv1.Lifetime_LIFETIME_STICKY, weftv1.Lifetime_LIFETIME_SESSION, weftv1.Lifetime_LIFETIME_DURABLE}[a.IntN(3)]
	}
}

// service puts the fragment's part of the service into a content.
func (a author) service(c *content) {
	t := c.table(serviceTable)
	if t.chains["pre"] == nil {
		t.chains["pre"] = &chain{base: [3]string{"nat", "prerouting", "dstnat"}, rules: []rule{{text: serviceRule, needs: []string{"services"}}}}
	}
	declare(t, "services").elements[serviceKey] = element{value: serviceValue}
}

// declarations are the sets and maps by name; a name means the same in every
// table that has it.
var declarations = map[string]set{
	"hosts":    {typ: "ipv4_addr"},
	"nets":     {typ: "ipv4_addr", flags: []string{"interval"}},
	"ports":    {typ: "inet_service"},
	"pairs":    {typ: "ipv4_addr . inet_service"},
	"targets":  {typ: "inet_service : ipv4_addr", isMap: true},
	"verdicts": {typ: "ipv4_addr : verdict", isMap: true},
	"services": {typ: "ipv4_addr . inet_proto . inet_service : ipv4_addr . inet_service", isMap: true, conntrack: true},
	"libset":   {typ: "ipv4_addr"},
	// What fragments declare differently.
	"moot": {typ: "ipv4_addr"},
	// What poisons are made of.
	"badnets":  {typ: "ipv4_addr", flags: []string{"interval"}},
	"badhosts": {typ: "ipv4_addr"},
	// The set of large snapshots.
	"large": {typ: "ipv4_addr"},
}

// declare returns a set of a table, made when it is new.
func declare(t *table, name string) *set {
	if t.sets[name] == nil {
		s := declarations[name]
		s.elements = make(map[string]element)
		t.sets[name] = &s
	}
	return t.sets[name]
}

// edit makes one change.
func (a author) edit(c *content) {
	id := []string{a.f.own, a.f.own, sharedTable, sharedTable, commonTable}[a.IntN(5)]
	t := c.table(id)
	switch n := a.IntN(20); {
	case n < 7:
		a.elements(declare(t, []string{"hosts", "nets", "ports", "pairs"}[a.IntN(4)]))
	case n < 11:
		a.elements(declare(t, "targets"))
	case n < 12:
		a.services(declare(c.table(serviceTable), "services"))
	case n < 14:
		a.verdicts(t)
	case n < 17:
		a.rules(t)
	case n < 18:
		a.library(c)
	case n < 19:
		a.moot(t)
	default:
		a.drop(c, t, id)
	}
}

// elements adds and removes elements of a set or map with simple keys.
func (a author) elements(s *set) {
	for range 1 + a.IntN(6) {
		key, e := "", element{}
		switch s.typ {
		case "ipv4_addr":
			key = fmt.Sprintf("10.200.0.%d", a.IntN(24))
			if len(s.flags) > 0 {
				// None of these overlap.
				key = fmt.Sprintf("10.201.%d.0/24", a.IntN(24))
			}
		case "inet_service":
			key = fmt.Sprint(2000 + a.IntN(24))
		case "ipv4_addr . inet_service":
			key = fmt.Sprintf("10.200.0.%d . %d", a.IntN(6), 2000+a.IntN(4))
		case "inet_service : ipv4_addr":
			key, e.value = fmt.Sprint(2000+a.IntN(12)), fmt.Sprintf("10.202.0.%d", a.IntN(9))
		}
		if a.IntN(3) == 0 {
			delete(s.elements, key)
			continue
		}
		if a.IntN(6) == 0 {
			e.comment = comments[a.IntN(len(comments))]
		}
		s.elements[key] = e
	}
}

// services changes the map of services, the stream's own key too where the
// fragment is not the one that it depends on: the first one wins.
func (a author) services(s *set) {
	for range 1 + a.IntN(4) {
		key := fmt.Sprintf("10.96.0.%d . %s . %d", 2+a.IntN(4), []string{"tcp", "udp"}[a.IntN(2)], 80+a.IntN(3))
		if a.IntN(3) == 0 {
			delete(s.elements, key)
			continue
		}
		s.elements[key] = element{value: fmt.Sprintf("192.168.78.%d . 8080", 3+a.IntN(5))}
	}
	if !a.f.service && a.IntN(4) == 0 {
		s.elements[serviceKey] = element{value: "192.168.78.9 . 8080"}
	}
}

// verdicts changes a verdict map that leads to chains of the fragment, and the
// rule that looks it up.
func (a author) verdicts(t *table) {
	s := declare(t, "verdicts")
	for range 1 + a.IntN(3) {
		key := fmt.Sprintf("10.200.0.%d", a.IntN(12))
		switch a.IntN(4) {
		case 0:
			delete(s.elements, key)
		case 1:
			s.elements[key] = element{value: "drop"}
		default:
			name := fmt.Sprintf("leaf%d", a.IntN(3))
			a.leaf(t, name)
			s.elements[key] = element{value: []string{"jump ", "goto "}[a.IntN(2)] + name}
		}
	}
	c := a.base(t)
	if !slices.ContainsFunc(c.rules, func(r rule) bool { return slices.Contains(r.needs, "verdicts") }) {
		c.rules = append(c.rules, rule{text: "ip saddr vmap @verdicts", needs: []string{"verdicts"}})
	}
}

// leaf returns a chain that jumps nowhere.
func (a author) leaf(t *table, name string) *chain {
	if t.chains[name] == nil {
		t.chains[name] = &chain{rules: []rule{a.simple()}}
	}
	return t.chains[name]
}

// base returns one of the base chains.
func (a author) base(t *table) *chain {
	i := a.IntN(3)
	name := []string{"filter-forward", "filter-input", "filter-output"}[i]
	if t.chains[name] == nil {
		t.chains[name] = &chain{base: [3]string{"filter", []string{"forward", "input", "output"}[i], "filter"}}
	}
	return t.chains[name]
}

// simple draws a rule that needs nothing, and that no packet of the stream
// matches.
func (a author) simple() rule {
	r := rule{text: []string{
		fmt.Sprintf("ip saddr 10.200.0.%d drop", a.IntN(30)),
		fmt.Sprintf("tcp dport %d accept", 2000+a.IntN(30)),
		fmt.Sprintf("tcp dport { %d, %d } drop", 2000+a.IntN(10), 2010+a.IntN(10)),
		fmt.Sprintf("meta mark 0x000000%02x return", 1+a.IntN(200)),
	}[a.IntN(4)]}
	if a.IntN(2) == 0 {
		r.comment = comments[a.IntN(len(comments))]
	}
	return r
}

// rules changes the rules of a chain.
func (a author) rules(t *table) {
	c := a.base(t)
	for range 1 + a.IntN(3) {
		at := a.IntN(len(c.rules) + 1)
		switch n := a.IntN(8); {
		case n < 2 && at < len(c.rules):
			c.rules = slices.Delete(c.rules, at, at+1)
		case n < 4:
			c.rules = slices.Insert(c.rules, at, a.simple())
		case n < 6:
			name := []string{"hosts", "nets"}[a.IntN(2)]
			declare(t, name)
			c.rules = slices.Insert(c.rules, at, rule{text: "ip saddr @" + name + " drop", needs: []string{name}})
		case n < 7:
			declare(t, "ports")
			c.rules = slices.Insert(c.rules, at, rule{text: "tcp dport @ports accept", needs: []string{"ports"}, comment: "ports"})
		default:
			name := fmt.Sprintf("mid%d", a.IntN(2))
			if t.chains[name] == nil {
				leaf := fmt.Sprintf("leaf%d", a.IntN(3))
				a.leaf(t, leaf)
				t.chains[name] = &chain{rules: []rule{a.simple(), {text: "jump " + leaf, needs: []string{leaf}}}}
			}
			c.rules = slices.Insert(c.rules, at, rule{text: "jump " + name, needs: []string{name}})
		}
	}
	if len(c.rules) > 12 {
		c.rules = c.rules[:6]
	}
}

// library declares what other fragments refer to, or refers to what others
// declare: the one or the other, so that all can come back after everything was
// lost.
func (a author) library(c *content) {
	t := c.table(sharedTable)
	switch {
	case a.f.provider && a.IntN(4) == 0:
		delete(t.chains, "lib")
		delete(t.sets, "libset")
	case a.f.provider:
		t.chains["lib"] = &chain{rules: []rule{a.simple()}}
		declare(t, "libset").elements[fmt.Sprintf("10.200.0.%d", a.IntN(9))] = element{}
	case c.lifetime == weftv1.Lifetime_LIFETIME_STICKY:
		b := a.base(t)
		b.rules = append(b.rules, []rule{{text: "jump lib"}, {text: "ip daddr @libset drop"}}[a.IntN(2)])
	}
}

// moot declares a set and a chain that are declared in several ways.
func (a author) moot(t *table) {
	s := declare(t, "moot")
	s.elements["10.200.0.1"] = element{}
	switch a.IntN(6) {
	case 0:
		s.size = 4096
	case 1:
		s.comment = "differs"
	case 2:
		t.chains["moot"] = &chain{base: [3]string{"filter", "output", "mangle"}, rules: []rule{a.simple()}}
	default:
		t.chains["moot"] = &chain{base: [3]string{"filter", "output", "security"}, rules: []rule{a.simple()}}
	}
}

// drop takes an object away, or a table.
func (a author) drop(c *content, t *table, id string) {
	switch n := a.IntN(5); {
	case n == 0:
		delete(c.tables, id)
	case n < 3 && len(t.chains) > 0:
		names := sorted(t.chains)
		delete(t.chains, names[a.IntN(len(names))])
	case len(t.sets) > 0:
		names := sorted(t.sets)
		delete(t.sets, names[a.IntN(len(names))])
	}
}

// mend takes out what refers to something that the content does not have, and
// references to others where the fragment may not outlive them.
func (a author) mend(c *content) {
	for _, t := range c.tables {
		for _, ch := range t.chains {
			ch.rules = slices.DeleteFunc(ch.rules, func(r rule) bool {
				return c.lifetime != weftv1.Lifetime_LIFETIME_STICKY && strings.Contains(r.text, "lib") ||
					slices.ContainsFunc(r.needs, func(n string) bool { return t.chains[n] == nil && t.sets[n] == nil })
			})
		}
		if s := t.sets["verdicts"]; s != nil {
			for key, e := range s.elements {
				if _, to, ok := strings.Cut(e.value, " "); ok && t.chains[to] == nil {
					delete(s.elements, key)
				}
			}
		}
	}
	if len(c.tables) == 0 {
		declare(c.table(a.f.own), "hosts")
	}
}

// large returns the content with a set of n elements.
func (a author) large(old *content, n int) *content {
	c := a.change(old)
	s := declare(c.table(a.f.own), "large")
	for i := range n {
		s.elements[fmt.Sprintf("10.%d.%d.%d", 100+a.IntN(4), i>>8, i&255)] = element{}
	}
	return c
}
