package chaos

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

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

// leaf is the place of chains without a hook.
var leaf [3]string

// author writes contents of one fragment at random.
type author struct {
	*rand.Rand
	f *fragment
}

// one draws one of several.
func one[T any](a author, of ...T) T { return of[a.IntN(len(of))] }

// change returns another content: the old one with some edits, seldom a new one,
// and seldom with another priority or lifetime.
func (a author) change(old *content) *content {
	c := proto.CloneOf(old)
	if old == nil || a.IntN(12) == 0 {
		c = &content{Name: a.f.name, Priority: int32(a.IntN(5) - 2), Lifetime: a.lifetime()}
	}
	if a.f.service {
		t := tableOf(c, serviceTable)
		if find(t.GetChains(), "pre") == nil {
			putChain(t, "pre", [3]string{"nat", "prerouting", "dstnat"}, serviceRule)
		}
		put(declare(t, "services"), &weftv1.Element{Key: serviceKey, Value: serviceValue})
	}
	if t := findTable(c, a.f.own); t != nil && a.IntN(3) > 0 {
		t.Sets = without(t.GetSets(), "large")
	}
	switch a.IntN(14) {
	case 0:
		c.Priority = int32(a.IntN(5) - 2)
	case 1:
		c.Lifetime = a.lifetime()
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
		return one(a, weftv1.Lifetime_LIFETIME_STICKY, weftv1.Lifetime_LIFETIME_DURABLE)
	default:
		return one(a, weftv1.Lifetime_LIFETIME_STICKY, weftv1.Lifetime_LIFETIME_SESSION, weftv1.Lifetime_LIFETIME_DURABLE)
	}
}

// declarations are the sets and maps by name; a name means the same in every
// table that has it.
var declarations = map[string]struct {
	typ   string
	flags []string
	role  weftv1.MapRole
}{
	"hosts":    {typ: "ipv4_addr"},
	"nets":     {typ: "ipv4_addr", flags: []string{"interval"}},
	"ports":    {typ: "inet_service"},
	"pairs":    {typ: "ipv4_addr . inet_service"},
	"targets":  {typ: "inet_service : ipv4_addr"},
	"verdicts": {typ: "ipv4_addr : verdict"},
	"services": {typ: "ipv4_addr . inet_proto . inet_service : ipv4_addr . inet_service", role: weftv1.MapRole_MAP_ROLE_CONNTRACK},
	"libset":   {typ: "ipv4_addr"},
	// What fragments declare differently.
	"moot": {typ: "ipv4_addr"},
	// What poisons are made of.
	"badnets":  {typ: "ipv4_addr", flags: []string{"interval"}},
	"badhosts": {typ: "ipv4_addr"},
	// The set of large snapshots.
	"large": {typ: "ipv4_addr"},
}

// edit makes one change.
func (a author) edit(c *content) {
	t := tableOf(c, one(a, a.f.own, a.f.own, sharedTable, sharedTable, commonTable))
	switch n := a.IntN(20); {
	case n < 7:
		a.elements(declare(t, one(a, "hosts", "nets", "ports", "pairs")))
	case n < 11:
		a.elements(declare(t, "targets"))
	case n < 12:
		a.services(declare(tableOf(c, serviceTable), "services"))
	case n < 14:
		a.verdicts(t)
	case n < 17:
		a.rules(t)
	case n < 18:
		a.library(c)
	case n < 19:
		a.moot(t)
	default:
		a.drop(c, t)
	}
}

// elements adds and removes elements of a set or map with simple keys.
func (a author) elements(s *weftv1.Set) {
	for range 1 + a.IntN(6) {
		e := &weftv1.Element{}
		switch s.GetType() {
		case "ipv4_addr":
			e.Key = host(200, a.IntN(24))
			if len(s.GetFlags()) > 0 {
				// None of these overlap.
				e.Key = fmt.Sprintf("10.201.%d.0/24", a.IntN(24))
			}
		case "inet_service":
			e.Key = fmt.Sprint(2000 + a.IntN(24))
		case "ipv4_addr . inet_service":
			e.Key = fmt.Sprintf("10.200.0.%d . %d", a.IntN(6), 2000+a.IntN(4))
		case "inet_service : ipv4_addr":
			e.Key, e.Value = fmt.Sprint(2000+a.IntN(12)), host(202, a.IntN(9))
		}
		if a.IntN(3) == 0 {
			drop(s, e.GetKey())
			continue
		}
		if a.IntN(6) == 0 {
			e.Comment = one(a, "red", "green", "blue")
		}
		put(s, e)
	}
}

// services changes the map of services, the stream's own key too where the
// fragment is not the one that it depends on: the first one wins.
func (a author) services(s *weftv1.Set) {
	for range 1 + a.IntN(4) {
		key := fmt.Sprintf("10.96.0.%d . %s . %d", 2+a.IntN(4), one(a, "tcp", "udp"), 80+a.IntN(3))
		if a.IntN(3) == 0 {
			drop(s, key)
			continue
		}
		put(s, &weftv1.Element{Key: key, Value: fmt.Sprintf("192.168.78.%d . 8080", 3+a.IntN(5))})
	}
	if !a.f.service && a.IntN(4) == 0 {
		put(s, &weftv1.Element{Key: serviceKey, Value: "192.168.78.9 . 8080"})
	}
}

// verdicts changes a verdict map that leads to chains of the fragment, and the
// rule that looks it up.
func (a author) verdicts(t *weftv1.Table) {
	s := declare(t, "verdicts")
	for range 1 + a.IntN(3) {
		key := host(200, a.IntN(12))
		switch a.IntN(4) {
		case 0:
			drop(s, key)
		case 1:
			put(s, &weftv1.Element{Key: key, Value: "drop"})
		default:
			put(s, &weftv1.Element{Key: key, Value: one(a, "jump ", "goto ") + a.leaf(t)})
		}
	}
	const lookup = "ip saddr vmap @verdicts"
	c := a.base(t)
	if !slices.ContainsFunc(c.GetRules(), func(r *weftv1.Rule) bool { return r.GetText() == lookup }) {
		c.Rules = append(c.GetRules(), &weftv1.Rule{Text: lookup})
	}
}

// leaf returns the name of a chain that jumps nowhere.
func (a author) leaf(t *weftv1.Table) string {
	name := fmt.Sprintf("leaf%d", a.IntN(3))
	if find(t.GetChains(), name) == nil {
		putChain(t, name, leaf, a.simple())
	}
	return name
}

// base returns one of the base chains.
func (a author) base(t *weftv1.Table) *weftv1.Chain {
	hook := one(a, "forward", "input", "output")
	if c := find(t.GetChains(), "filter-"+hook); c != nil {
		return c
	}
	return putChain(t, "filter-"+hook, [3]string{"filter", hook, "filter"})
}

// simple draws a rule that needs nothing, and that no packet of the stream
// matches.
func (a author) simple() string {
	return one(a,
		fmt.Sprintf("ip saddr 10.200.0.%d drop", a.IntN(30)),
		fmt.Sprintf("tcp dport %d accept", 2000+a.IntN(30)),
		fmt.Sprintf("tcp dport { %d, %d } drop", 2000+a.IntN(10), 2010+a.IntN(10)),
		fmt.Sprintf("meta mark 0x000000%02x return", 1+a.IntN(200)),
	)
}

// rules changes the rules of a chain.
func (a author) rules(t *weftv1.Table) {
	c := a.base(t)
	for range 1 + a.IntN(3) {
		at := a.IntN(len(c.GetRules()) + 1)
		r := &weftv1.Rule{Comment: one(a, "", "red", "green")}
		switch n := a.IntN(8); {
		case n < 2 && at < len(c.GetRules()):
			c.Rules = slices.Delete(c.GetRules(), at, at+1)
			continue
		case n < 4:
			r.Text = a.simple()
		case n < 6:
			r.Text = "ip saddr @" + declare(t, one(a, "hosts", "nets")).GetName() + " drop"
		case n < 7:
			r.Text = "tcp dport @" + declare(t, "ports").GetName() + " accept"
		default:
			mid := fmt.Sprintf("mid%d", a.IntN(2))
			if find(t.GetChains(), mid) == nil {
				putChain(t, mid, leaf, a.simple(), "jump "+a.leaf(t))
			}
			r.Text = "jump " + mid
		}
		c.Rules = slices.Insert(c.GetRules(), at, r)
	}
	if len(c.GetRules()) > 12 {
		c.Rules = c.GetRules()[:6]
	}
}

// library declares what other fragments refer to, or refers to what others
// declare: the one or the other, so that all can come back after everything was
// lost.
func (a author) library(c *content) {
	t := tableOf(c, sharedTable)
	switch {
	case a.f.provider && a.IntN(4) == 0:
		t.Chains, t.Sets = without(t.GetChains(), "lib"), without(t.GetSets(), "libset")
	case a.f.provider:
		putChain(t, "lib", leaf, a.simple())
		put(declare(t, "libset"), &weftv1.Element{Key: host(200, a.IntN(9))})
	case c.GetLifetime() == weftv1.Lifetime_LIFETIME_STICKY:
		b := a.base(t)
		b.Rules = append(b.GetRules(), &weftv1.Rule{Text: one(a, "jump lib", "ip daddr @libset drop")})
	}
}

// moot declares a set and a chain that are declared in several ways.
func (a author) moot(t *weftv1.Table) {
	s := declare(t, "moot")
	put(s, &weftv1.Element{Key: host(200, 1)})
	switch a.IntN(6) {
	case 0:
		s.Size = 4096
	case 1:
		s.Comment = "differs"
	case 2:
		putChain(t, "moot", [3]string{"filter", "output", "mangle"}, a.simple())
	default:
		putChain(t, "moot", [3]string{"filter", "output", "security"}, a.simple())
	}
}

// drop takes an object away, or a table.
func (a author) drop(c *content, t *weftv1.Table) {
	switch n := a.IntN(5); {
	case n == 0:
		c.Tables = slices.DeleteFunc(c.GetTables(), func(o *weftv1.Table) bool { return o == t })
	case n < 3 && len(t.GetChains()) > 0:
		t.Chains = without(t.GetChains(), one(a, t.GetChains()...).GetName())
	case len(setsOf(t)) > 0:
		name := one(a, setsOf(t)...).GetName()
		t.Sets, t.Maps = without(t.GetSets(), name), without(t.GetMaps(), name)
	}
}

// references finds the set and the chain that a rule or a verdict refers to.
var references = regexp.MustCompile(`(?:@|jump |goto )(\w+)`)

// mend takes out what refers to something that the content does not have, and
// references to others where the fragment may not outlive them.
func (a author) mend(c *content) {
	for _, t := range c.GetTables() {
		dangling := func(text string) bool {
			m := references.FindStringSubmatch(text)
			if m == nil {
				return false
			}
			if strings.HasPrefix(m[1], "lib") {
				return c.GetLifetime() != weftv1.Lifetime_LIFETIME_STICKY
			}
			return find(t.GetChains(), m[1]) == nil && find(setsOf(t), m[1]) == nil
		}
		for _, ch := range t.GetChains() {
			ch.Rules = slices.DeleteFunc(ch.GetRules(), func(r *weftv1.Rule) bool { return dangling(r.GetText()) })
		}
		if s := find(t.GetMaps(), "verdicts"); s != nil {
			s.Elements = slices.DeleteFunc(s.GetElements(), func(e *weftv1.Element) bool { return dangling(e.GetValue()) })
		}
	}
	if len(c.GetTables()) == 0 {
		declare(tableOf(c, a.f.own), "hosts")
	}
}

// large returns the content with a set of largeSize elements.
func (a author) large(old *content) *content {
	c := a.change(old)
	s := declare(tableOf(c, a.f.own), "large")
	s.Elements = nil
	for i := range largeSize {
		s.Elements = append(s.GetElements(), &weftv1.Element{Key: fmt.Sprintf("10.%d.%d.%d", 100+a.IntN(4), i>>8, i&255)})
	}
	return c
}

// content is what a fragment holds. Values are immutable once a command was
// made of them; nil stands for a fragment that is not there.
type content = weftv1.Fragment

// named are the messages that have a name.
type named interface {
	comparable
	GetName() string
}

// find returns the one of a name, or nil.
func find[T named](all []T, name string) (found T) {
	for _, m := range all {
		if m.GetName() == name {
			found = m
		}
	}
	return found
}

// without takes the one of a name out.
func without[T named](all []T, name string) []T {
	return slices.DeleteFunc(all, func(m T) bool { return m.GetName() == name })
}

func tableID(t *weftv1.Table) string { return t.GetFamily() + " " + t.GetName() }

// findTable returns the table "family name", or nil.
func findTable(c *content, id string) *weftv1.Table {
	for _, t := range c.GetTables() {
		if tableID(t) == id {
			return t
		}
	}
	return nil
}

// tableOf returns a table of a content, made when it is new.
func tableOf(c *content, id string) *weftv1.Table {
	t := findTable(c, id)
	if t == nil {
		family, name, _ := strings.Cut(id, " ")
		t = &weftv1.Table{Family: family, Name: name}
		c.Tables = append(c.GetTables(), t)
	}
	return t
}

// setsOf returns the sets and maps of a table.
func setsOf(t *weftv1.Table) []*weftv1.Set { return slices.Concat(t.GetSets(), t.GetMaps()) }

// declare returns a set or map of a table, made when it is new.
func declare(t *weftv1.Table, name string) *weftv1.Set {
	s := find(setsOf(t), name)
	if s == nil {
		d := declarations[name]
		s = &weftv1.Set{Name: name, Type: d.typ, Flags: d.flags, Role: d.role}
		if strings.Contains(d.typ, " : ") {
			t.Maps = append(t.GetMaps(), s)
		} else {
			t.Sets = append(t.GetSets(), s)
		}
	}
	return s
}

// drop takes an element away.
func drop(s *weftv1.Set, key string) {
	s.Elements = slices.DeleteFunc(s.GetElements(), func(e *weftv1.Element) bool { return e.GetKey() == key })
}

// put adds an element, or replaces it.
func put(s *weftv1.Set, e *weftv1.Element) {
	drop(s, e.GetKey())
	s.Elements = append(s.GetElements(), e)
}

// putChain adds a chain of a type, a hook and a priority, all "" for one that is jumped to, or replaces it.
func putChain(t *weftv1.Table, name string, base [3]string, rules ...string) *weftv1.Chain {
	c := &weftv1.Chain{Name: name}
	if base[0] != "" {
		c.Type, c.Hook, c.Priority, c.Policy = base[0], base[1], base[2], "accept"
	}
	for _, text := range rules {
		c.Rules = append(c.GetRules(), &weftv1.Rule{Text: text})
	}
	t.Chains = append(without(t.GetChains(), name), c)
	return c
}

// elements counts the elements of all sets.
func elements(c *content) (n int) {
	for _, t := range c.GetTables() {
		for _, s := range setsOf(t) {
			n += len(s.GetElements())
		}
	}
	return n
}

// host is the nth address of a network with 256 addresses.
func host(network, n int) string { return fmt.Sprintf("10.%d.0.%d", network, n) }

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
