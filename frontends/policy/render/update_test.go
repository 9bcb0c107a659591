package render

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/policy/model"
)

// many returns n addresses in text.
func many(n int) (out []string) {
	for i := range n {
		out = append(out, netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)}).String())
	}
	return out
}

// target returns the chain of an address.
func (f *fixture) target(m, addr string) string {
	return f.rules["ip"].sets[m].elements[addr].GetValue()
}

// TestLargeSetIsFilledInPieces isolates a pod at once and fills the set of its policy
// afterwards. A pod that is isolated already keeps its old policy until the set is full.
//
// Policy behaviour: 50.
func TestLargeSetIsFilledInPieces(t *testing.T) {
	f := newFixture(t)
	f.set("all", many(3*manyMembers)...)
	f.set("few", "11.0.0.1")
	f.policy("a/old", []model.Rule{{Pods: []model.SetID{"few"}, AllPorts: true}}, nil)
	f.pod("a/isolated", "10.0.0.1", []string{"a/old"}, nil)
	f.finish()
	before := f.target(mapNames[ingress], "10.0.0.1")
	f.policy("a/old", []model.Rule{{Pods: []model.SetID{"all"}, AllPorts: true}}, nil)
	f.pod("a/open", "10.0.0.2", []string{"a/old"}, nil)
	f.update()
	after := f.target(mapNames[ingress], "10.0.0.2")
	if after == "" || after == before {
		t.Fatalf("the new pod leads to %q", after)
	}
	for n := range 2 {
		if got := f.target(mapNames[ingress], "10.0.0.1"); got != before {
			t.Fatalf("after %d pieces the isolated pod leads to %q, want %q", n, got, before)
		}
		if !f.r.Pending() {
			t.Fatal("nothing is pending")
		}
		f.compare()
		f.step(model.Changes{})
	}
	if got := f.target(mapNames[ingress], "10.0.0.1"); got != after || f.r.Pending() {
		t.Errorf("in the end it leads to %q, want %q; pending %v", got, after, f.r.Pending())
	}
}

// TestWork changes one thing among many, and expects that the work does not depend on the
// rest.
func TestWork(t *testing.T) {
	work := func(size int, change func(f *fixture)) uint64 {
		f := newFixture(t)
		for i := range size {
			f.set(fmt.Sprintf("s%d", i), many(size)...)
			f.policy(fmt.Sprintf("a/p%d", i), []model.Rule{{Pods: []model.SetID{model.SetID(fmt.Sprintf("s%d", i))}, Ports: ports("tcp 80", "udp 53")}}, nil)
			f.pod(fmt.Sprintf("a/%d", i), fmt.Sprintf("10.0.%d.%d", i/250, 1+i%250), []string{fmt.Sprintf("a/p%d", i)}, nil)
		}
		f.finish()
		before := f.r.Work()
		change(f)
		f.finish()
		return f.r.Work() - before
	}
	tests := map[string]struct {
		most   uint64
		change func(f *fixture)
	}{
		"nothing": {0, func(*fixture) {}},
		"a member": {4, func(f *fixture) {
			f.sets["s1"].members[model.Member{Addr: netip.MustParseAddr("10.9.9.9")}] = struct{}{}
		}},
		"a narrowing":   {8, func(f *fixture) { f.narrowed = addresses("10.0.0.1") }},
		"a pod goes":    {10, func(f *fixture) { delete(f.pods, "a/1") }},
		"a pod comes":   {20, func(f *fixture) { f.pod("a/new", "10.0.9.9", []string{"a/p1"}, nil) }},
		"a policy":      {40, func(f *fixture) { f.policy("a/p1", everyone, nil) }},
		"another class": {40, func(f *fixture) { f.pod("a/1", "10.0.0.2", []string{"a/p1", "a/p2"}, nil) }},
	}
	for name, test := range tests {
		small, large := work(5, test.change), work(100, test.change)
		if small != large || large > test.most {
			t.Errorf("%s: work %d among few and %d among many, want the same and at most %d", name, small, large, test.most)
		}
	}
}

// TestRecheck holds addresses for as long as configured, and switches to all of them.
func TestRecheck(t *testing.T) {
	now := time.Unix(0, 0)
	f := newFixture(t, func(c *Config) {
		c.RecheckFor, c.Now = time.Hour, func() time.Time { return now }
	})
	f.policy("a/p", nil, nil)
	f.pod("a/0", "10.0.0.1", []string{"a/p"}, []string{"a/p"})
	first := func(chain string) string {
		rules := f.rules["ip"].chains[chain].GetRules()
		if chain == chainInput {
			// The first one is about connections that conntrack has forgotten.
			rules = rules[1:]
		}
		return rules[0].GetText()
	}
	narrow := func(after time.Duration, a ...string) {
		now = now.Add(after)
		f.narrowed = addresses(a...)
		f.finish()
		f.compare()
	}
	members := func() int { return len(f.rules["ip"].sets[setRecheck].elements) }
	narrow(0)
	if got := first(chainForward); got != "ct state established,related accept" {
		t.Errorf("without addresses: %s", got)
	}
	narrow(0, "10.0.0.1", "10.0.0.2")
	if got := first(chainForward); !strings.Contains(got, "!= @recheck ct reply ip saddr != @recheck accept") || members() != 2 {
		t.Errorf("with 2 addresses: %s, %d members", got, members())
	}
	narrow(30*time.Minute, "10.0.0.2")
	if due := f.r.Due(); !due.Equal(time.Unix(3600, 0)) || f.r.Pending() {
		t.Errorf("due at %s, pending %v", due, f.r.Pending())
	}
	now = now.Add(30 * time.Minute)
	if !f.r.Pending() {
		t.Error("not pending when an address is due")
	}
	narrow(0)
	if members() != 1 {
		t.Errorf("%d members after an hour, want the one that was narrowed again", members())
	}
	narrow(30 * time.Minute)
	if got := first(chainForward); got != "ct state established,related accept" || members() != 0 || !f.r.Due().IsZero() {
		t.Errorf("in the end: %s, %d members", got, members())
	}
	narrow(0, many(maxRechecked+1)...)
	if got := first(chainInput); got != relatedOnly || members() != 0 {
		t.Errorf("with very many: %s, %d members", got, members())
	}
	narrow(time.Minute, "10.0.0.1")
	narrow(time.Hour - time.Minute)
	if got := first(chainInput); got != relatedOnly {
		t.Errorf("an hour after the first: %s", got)
	}
	narrow(time.Minute)
	if got := first(chainInput); got != "ct state established,related accept" {
		t.Errorf("an hour after the last: %s", got)
	}
}

// restarted returns a fixture whose renderer adopts what another one left.
func (f *fixture) restarted(edit ...func(*Config)) *fixture {
	out := newFixture(f.t, edit...)
	out.r.Restore(f.r.Snapshot())
	out.pods, out.policies, out.sets = f.pods, f.policies, f.sets
	return out
}

// start loads the changes, as a publisher does first.
func (f *fixture) start() {
	f.r.Load(f.refresh())
	f.rules = load(f.t, f.r.Snapshot())
}

// TestRestart starts again with the same objects and with others.
//
// Policy behaviour: 51.
func TestRestart(t *testing.T) {
	f := newFixture(t)
	f.set("all", many(2*manyMembers)...)
	f.set("few", "11.0.0.1", "11.0.0.2")
	f.policy("a/p", []model.Rule{{Pods: []model.SetID{"all"}, AllPorts: true}}, nil)
	f.policy("a/q", []model.Rule{{Pods: []model.SetID{"few"}, AllPorts: true}}, nil)
	f.policy("admin/x", []model.Rule{{Action: model.Deny, Pods: []model.SetID{"few"}, AllPorts: true}}, nil)
	for i, p := range []string{"a/p", "a/q", "admin/x"} {
		f.pod(fmt.Sprintf("a/%d", i), fmt.Sprintf("10.0.0.%d", i), []string{p}, nil)
	}
	f.narrowed = addresses("12.0.0.1")
	f.finish()
	was := f.rules.String()

	again := f.restarted()
	again.narrowed = addresses("10.0.0.0", "10.0.0.1", "10.0.0.2")
	again.start()
	if again.rules.String() != was || again.r.Pending() {
		t.Errorf("before:\n%s\nafter a restart:\n%s", was, again.rules.String())
	}

	other := f.restarted()
	other.policy("a/q", nil, nil)
	other.set("few", "11.0.0.2", "11.0.0.3")
	other.start()
	recheck := func() string {
		var all []string
		for _, e := range load(t, other.r.Snapshot())["ip"].sets[setRecheck].elements {
			all = append(all, e.GetKey())
		}
		return fmt.Sprint(len(all), all)
	}
	// The pod with the other policy, the address that left the set, and the one that came
	// into a set of a rule that denies.
	for _, want := range []string{"12.0.0.1", "10.0.0.1", "11.0.0.1", "11.0.0.3"} {
		if got := recheck(); !strings.Contains(got, want) || !strings.HasPrefix(got, "4 ") {
			t.Errorf("rechecked are %s, want %s among 4", got, want)
		}
	}

	f.narrowed = addresses(many(maxRechecked + 1)...)
	f.finish()
	all := f.restarted()
	all.start()
	if got := all.rules["ip"].chains[chainForward].GetRules()[0].GetText(); got != relatedOnly {
		t.Errorf("after a restart with very many narrowed addresses: %s", got)
	}
}

// TestOwner finds the policies of rules, sets and counters.
func TestOwner(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.DropLog = 1 })
	everyConstruct(f)
	f.finish()
	owner := func(kind, name string, index uint32) string {
		id, ok := f.r.Owner(&weftv1.ObjectName{Kind: kind, Family: "ip", Table: Table, Name: name, Index: index})
		if !ok {
			return "none"
		}
		return policyName(id)
	}
	for name, o := range f.r.tables[0].byName {
		got := owner("chain", name, 1)
		switch {
		case strings.HasPrefix(name, "policy-") && !strings.Contains(o.content.(*weftv1.Chain).GetComment(), got[:min(len(got), 60)]),
			strings.HasPrefix(name, "sel-") && got == "none",
			strings.HasPrefix(name, "block-") && got != "shop/db",
			strings.HasPrefix(name, "rule-") && got == "none":
			t.Errorf("%s belongs to %s", name, got)
		case strings.HasPrefix(name, "admin-") && len(o.owners) > 1:
			if a, b := owner("rule", name, 1), owner("rule", name, uint32(len(o.owners))); a == "none" || b == "none" { //nolint:gosec // a few rules
				t.Errorf("the rules of %s belong to %s and %s", name, a, b)
			}
		}
	}
	for _, name := range []string{chainForward, mapNames[ingress], "what-is-this"} {
		if got := owner("chain", name, 0); got != "none" {
			t.Errorf("%s belongs to %s", name, got)
		}
	}
	if _, ok := f.r.Owner(&weftv1.ObjectName{Family: "ip", Table: "other"}); ok {
		t.Error("another table has an owner")
	}
}

// TestDropLog logs drops at a limited rate, with the policies of the pod and the direction.
//
// Policy behaviour: 54.
func TestDropLog(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.DropLog = 3 })
	f.policy("shop/closed", nil, nil)
	f.pod("shop/db", "10.0.0.1", nil, []string{"shop/closed"})
	f.finish()
	if want := `limit rate 3/second log prefix "weft drop shop/closed egress "`; !strings.Contains(f.rules.String(), want) {
		t.Errorf("no rule has %s:\n%s", want, f.rules)
	}
}

// TestNames cuts names and keeps them different, even if their hashes are the same.
//
// Policy behaviour: 57.
func TestNames(t *testing.T) {
	s := newObjects()
	one := func(string) *object { return &object{} }
	a := s.intern(identity{1, 2, 3, 4, 5, 0}, "policy", strings.Repeat("long-", 20), one)
	b := s.intern(identity{1, 2, 3, 4, 5, 1}, "policy", strings.Repeat("long-", 20), one)
	if again := s.intern(identity{1, 2, 3, 4, 5, 1}, "policy", strings.Repeat("long-", 20), one); again != b || a == b {
		t.Error("an object is not found again")
	}
	if a.name == b.name || len(a.name) > maxName || len(b.name) > maxName {
		t.Errorf("names %q and %q", a.name, b.name)
	}
	if x, y := comment(strings.Repeat("x", 200)), comment(strings.Repeat("x", 201)); x == y || len(x) != maxComment || len(y) != maxComment {
		t.Errorf("comments %q and %q", x, y)
	}
}

// TestConfig rejects what makes no sense.
func TestConfig(t *testing.T) {
	for _, cfg := range []Config{{}, {Families: [2]bool{true}, RecheckFor: -1}, {Families: [2]bool{true}, Start: 7}, {Families: [2]bool{true}, DropLog: -1}} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v is valid", cfg)
		}
	}
	r, err := New(Config{Families: [2]bool{false, true}})
	must(t, err)
	if tables := r.Snapshot().GetTables(); len(tables) != 1 || tables[0].GetFamily() != "ip6" {
		t.Errorf("tables %v", tables)
	}
	if r.Idle() || r.Pending() || r.Cleanup() != nil {
		t.Error("an empty model has something to do")
	}
}
