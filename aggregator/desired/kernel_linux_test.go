package desired_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/adopt"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/kernel"
	nftobject "github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/ruleset"
	nftset "github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// live is a State with a real kernel.
type live struct {
	t *testing.T
	*merge.State
	ns   *nfttest.NS
	conn *kernel.Conn
}

func newLive(t *testing.T) *live {
	t.Helper()
	nfttest.Require(t, nfttest.Namespaces)
	l := &live{t: t, State: merge.New(), ns: nfttest.New(t)}
	l.open()
	t.Cleanup(func() { _ = l.conn.Close() })
	return l
}

func (l *live) open() {
	l.t.Helper()
	conn, err := kernel.Open(kernel.Config{NetNS: l.ns.FD()})
	must(l.t, err)
	l.conn = conn
}

// sets lets rules be compiled against the sets of the same text before those
// of the state.
type sets struct {
	own   map[string]*nftset.Set
	other *merge.TableScope
	used  map[string]*nftset.Set
}

func (s *sets) Set(name string) (*nftset.Set, bool) {
	if d, ok := s.own[name]; ok {
		return d, true
	}
	d, ok := s.other.Set(name)
	if ok {
		s.used[name] = d
	}
	return d, ok
}

func (s *sets) Chain(string) bool { return true }

func (s *sets) Object(nft.ObjectKind, string) bool { return true }

func (s *sets) Flowtable(string) bool { return true }

// compile makes a snapshot of a .nft file; the maps named endpoints have their
// flows watched.
func (l *live) compile(key desired.Key, text string) *desired.Update {
	l.t.Helper()
	tables, err := ruleset.Parse(key.String(), text)
	must(l.t, err)
	u := snapshot(key, 0)
	for i := range tables {
		tu, err := compileTable(&tables[i], l.Scope())
		must(l.t, err)
		u.Tables = append(u.Tables, tu)
	}
	return u
}

func compileTable(t *nft.Table, scope *merge.Scope) (desired.TableUpdate, error) {
	tu := desired.TableUpdate{Table: t.ID(), Comment: t.Comment}
	sc := &sets{own: map[string]*nftset.Set{}, other: scope.Table(t.ID()), used: map[string]*nftset.Set{}}
	add := func(d *nftset.Set, err error, elems []nft.Element) error {
		if err != nil {
			return err
		}
		s := desired.Set{Decl: d, Conntrack: d.Name == "endpoints"}
		for _, e := range elems {
			packed, err := d.Pack(e)
			if err != nil {
				return err
			}
			s.Elements = append(s.Elements, packed)
		}
		sc.own[d.Name] = d
		tu.PutSets = append(tu.PutSets, s)
		return nil
	}
	for i := range t.Sets {
		d, err := nftset.Compile(t.Family, &t.Sets[i])
		if err := add(d, err, t.Sets[i].Elements); err != nil {
			return tu, err
		}
	}
	for i := range t.Maps {
		d, err := nftset.CompileMap(t.Family, &t.Maps[i])
		if err := add(d, err, t.Maps[i].Elements); err != nil {
			return tu, err
		}
	}
	for i := range t.Chains {
		d, err := nftobject.CompileChain(t.Family, &t.Chains[i])
		if err != nil {
			return tu, err
		}
		c := desired.Chain{Decl: d}
		for _, r := range t.Chains[i].Rules {
			compiled, err := compile.CompileRule(t.Family, r, sc)
			if err != nil {
				return tu, fmt.Errorf("%s: %w", r.Text, err)
			}
			c.Rules = append(c.Rules, compiled)
		}
		tu.PutChains = append(tu.PutChains, c)
	}
	tu.Uses = sc.used
	return tu, nil
}

// commit commits updates, and checks that the kernel then has the merge.
func (l *live) commit(updates ...*desired.Update) *desired.Plan {
	l.t.Helper()
	for _, u := range updates {
		must(l.t, l.Apply(u))
	}
	p := planner.Make(l.State)
	if _, err := l.conn.Commit(p.Ops); err != nil {
		l.t.Fatalf("commit: %+v", err)
	}
	planner.Accept(l.State)
	checkInvariants(l.t, l.State)
	l.checkDiff()
	return p
}

func (l *live) checkDiff() {
	l.t.Helper()
	dump, err := l.conn.Dump()
	must(l.t, err)
	if d := planner.Diff(l.State, dump); !noOps(d) {
		var ops []string
		for _, op := range d.Ops {
			ops = append(ops, kernel.Describe(op))
		}
		l.t.Fatalf("the kernel is not the merge, it takes:\n%s", strings.Join(ops, "\n"))
	}
	planner.Accept(l.State)
}

// restart closes the connection and adopts the tables.
func (l *live) restart() {
	l.t.Helper()
	record := views.Record(l.State)
	must(l.t, l.conn.Close())
	l.open()
	dump, err := l.conn.Adopt()
	must(l.t, err)
	l.State = merge.New()
	adopt.Dump(l.State, dump, record)
	checkInvariants(l.t, l.State)
	l.checkDiff()
}

const dataplane = `
table ip weft {
  comment "services"
  map services {
    typeof ip daddr . meta l4proto . th dport : verdict
    elements = { 10.96.0.1 . udp . 53 comment "default/dns" : goto pick-2, 10.96.0.2 . tcp . 80 : goto pick-2 }
  }
  map endpoints {
    typeof ip daddr . meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport
    elements = { 10.96.0.1 . udp . 53 . 0 : 10.1.0.1 . 53, 10.96.0.1 . udp . 53 . 1 : 10.1.0.2 . 53,
                 10.96.0.2 . tcp . 80 . 0 : 10.1.0.1 . 80, 10.96.0.2 . tcp . 80 . 1 : 10.1.0.2 . 80 }
  }
  set nodes {
    type ipv4_addr
    flags interval
    elements = { 10.0.0.0/8, 192.168.1.1, 192.168.2.1-192.168.2.9 }
  }
  chain pick-2 {
    meta l4proto { tcp, udp } dnat ip to ip daddr . meta l4proto . th dport . numgen random mod 2 map @endpoints
  }
  chain prerouting {
    type nat hook prerouting priority dstnat; policy accept;
    ip saddr @nodes counter comment "seen"
    ip daddr . meta l4proto . th dport vmap @services
  }
}
`

const deny = `
table ip weft {
  set blocked {
    type ipv4_addr
    flags timeout
    elements = { 10.0.0.66, 10.0.0.67 timeout 1h comment "for an hour" }
  }
  chain refuse {
    reject
  }
  chain prerouting {
    type nat hook prerouting priority dstnat; policy accept;
    ip saddr @blocked jump refuse
    ip saddr @nodes counter
  }
}
table inet other {
  chain input {
    type filter hook input priority 0; policy accept;
    tcp dport { 22, 80 } accept
  }
}
`

func TestKernel(t *testing.T) {
	l := newLive(t)
	l.commit(l.compile(services, dataplane))
	l.commit(l.compile(policy, deny))
	if p := l.commit(l.compile(services, dataplane), l.compile(policy, deny)); !noOps(p) {
		t.Errorf("plan of the same again:\n%s", planText(p))
	}

	t.Run("restart", func(t *testing.T) {
		l.t = t
		live := fmt.Sprint(planner.Live(l.State))
		l.restart()
		same(t, "live flows after a restart", fmt.Sprint(planner.Live(l.State)), live)
		empty(t, "when policy is back", l.commit(l.compile(policy, deny)))
		empty(t, "when services is back", l.commit(l.compile(services, dataplane)))
	})
	t.Run("element", func(t *testing.T) {
		l.t = t
		p := l.commit(l.compile(services, strings.Replace(dataplane, "53 . 0 : 10.1.0.1", "53 . 0 : 10.1.0.3", 1)))
		if p.Counts != (desired.Counts{ElementsAdded: 1, ElementsDeleted: 1}) || len(p.Stale) != 1 {
			t.Errorf("counts %+v, stale %v", p.Counts, p.Stale)
		}
		l.commit(l.compile(services, dataplane))
	})
	t.Run("other chain", func(t *testing.T) {
		l.t = t
		l.commit(l.compile(services, strings.ReplaceAll(strings.ReplaceAll(dataplane, "pick-2", "pick-3"), "mod 2", "mod 3")))
		l.commit(l.compile(services, dataplane))
	})
	t.Run("rules", func(t *testing.T) {
		l.t = t
		p := l.commit(l.compile(policy, strings.Replace(deny, "    ip saddr @blocked", "    ip ttl 1 drop\n    ip saddr @blocked", 1)))
		if p.Counts != (desired.Counts{RulesAdded: 1, ElementsAdded: 1}) { // one element has a timeout, and is renewed
			t.Errorf("counts %+v", p.Counts)
		}
		l.commit(l.compile(policy, deny))
	})
	t.Run("redeclared set in use", func(t *testing.T) {
		l.t = t
		l.commit(l.compile(services, strings.Replace(dataplane, "flags interval", "flags interval; auto-merge; size 1000", 1)))
		l.commit(l.compile(services, dataplane))
	})
	t.Run("chain anew", func(t *testing.T) {
		l.t = t
		l.commit(l.compile(services, strings.Replace(dataplane, "chain pick-2 {", "chain pick-2 {\n comment \"two\"", 1)))
		l.commit(l.compile(policy, strings.Replace(deny, "priority 0; policy accept", "priority 5; policy drop", 1)))
		l.commit(l.compile(services, dataplane), l.compile(policy, deny))
	})
	t.Run("conflict and withdrawal", func(t *testing.T) {
		l.t = t
		if err := l.Apply(snapshot(services, 0)); err == nil {
			t.Error("services went although policy uses @nodes")
		}
		l.commit(snapshot(policy, 0))
		l.commit(l.compile(policy, deny))
		l.commit(snapshot(policy, 0), snapshot(services, 0))
		same(t, "what is left", l.ns.ListRuleset(t), "")
	})
}
