package knft_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/knftables"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/knft"
)

// TestUnsupported has every unsupported operation: the error must name it, and nothing may be sent.
func TestUnsupported(t *testing.T) {
	nft, k := shared(t)
	commits := len(k.Commits())
	for text, do := range map[string]step{
		"reset counter hits":        func(tx *knftables.Transaction) { tx.Reset(&knftables.Counter{Name: "hits"}) },
		"flags dormant":             add(&knftables.Table{Flags: []knftables.TableFlag{knftables.DormantFlag}}),
		"delete table by handle":    remove(&knftables.Table{Handle: ptr(1)}),
		"delete chain by handle":    remove(&knftables.Chain{Name: "base", Handle: ptr(1)}),
		"destroy chain by handle":   destroy(&knftables.Chain{Name: "base", Handle: ptr(1)}),
		"delete set by handle":      remove(&knftables.Set{Name: "hosts", Handle: ptr(1)}),
		"delete map by handle":      steps(remove(&knftables.Map{Name: "ports", Handle: ptr(1)}), add(rule("base", "accept"))),
		"delete counter by handle":  remove(&knftables.Counter{Name: "hits", Handle: ptr(1)}),
		"counter of element 10.0.0": add(member("hosts", "10.0.0.7 counter")),
	} {
		err := run(t, nft, add(chain("before")), do)
		if !errors.Is(err, knft.ErrUnsupported) || !strings.Contains(err.Error(), text) {
			t.Errorf("error: %v: want %q", err, text)
		}
	}
	if n := len(k.Commits()); n != commits {
		t.Errorf("%d commits were made", n-commits)
	}
}

func TestObjects(t *testing.T) {
	d, k := startFake(t)
	nft, other := newAdapter(t, d.Dial(t, "agent"), sharedConfig), newAdapter(t, d.Dial(t, "other"), sharedConfig)
	named := func(name string) *knftables.Counter { return &knftables.Counter{Name: name} }
	counter := func(name string) *knftables.Counter {
		return &knftables.Counter{Name: name, Comment: ptr("of " + name), Packets: ptr(uint64(3)), Bytes: ptr(uint64(180))}
	}
	fast := &knftables.Flowtable{Name: "fast", Priority: ptr(knftables.FilterIngressPriority), Devices: []string{"eth0", "eth1"}}
	must(t, nft, add(table(), counter("hits"), fast, chain("base"), rule("base", `counter name "hits" accept`)))
	must(t, nft, add(named("hits"), counter("more")))
	must(t, other, add(table(), counter("theirs")))
	ctx := aggregatortest.Context(t)
	for what, want := range map[string][]string{"counters": {"hits", "more", "theirs"}, "flowtables": {"fast"}} {
		if got, err := nft.List(ctx, what); err != nil || !slices.Equal(got, want) {
			t.Errorf("list %s: %v, %v: want %v", what, got, err, want)
		}
	}
	if _, err := nft.ListCounters(ctx); !errors.Is(err, knft.ErrUnsupported) {
		t.Errorf("list counters: %v", err)
	}
	for _, c := range []struct {
		do step
		is func(error) bool
	}{
		{create(counter("hits")), knftables.IsAlreadyExists},
		{remove(named("missing")), knftables.IsNotFound},
		{remove(named("theirs")), isForeign},
		{remove(named("hits")), func(err error) bool { return err != nil && strings.Contains(err.Error(), "counter hits") }},
	} {
		if err := run(t, nft, c.do); !c.is(err) {
			t.Errorf("counter: %v", err)
		}
	}
	must(t, nft, flush(chain("base")), remove(named("hits")), destroy(named("missing")), remove(&knftables.Flowtable{Name: "fast"}))
	if got, err := nft.List(ctx, "counters"); err != nil || !slices.Equal(got, []string{"more", "theirs"}) {
		t.Errorf("counters after deletion: %v, %v in\n%s", got, err, k)
	}
}

// TestErrorsSayWhat compares messages.
func TestErrorsSayWhat(t *testing.T) {
	nft, _ := shared(t)
	for want, do := range map[string]step{
		"delete chain ip shared none: no such chain none in table ip shared":       remove(chain("none")),
		"add rule ip shared base: no such set or map none in table ip shared":      add(rule("base", "ip saddr @none drop")),
		"create element ip shared hosts: element 10.0.0.1 already exists in hosts": create(member("hosts", "10.0.0.1")),
		"no chain name specified for rule":                                         add(rule("", "accept")),
		"2 operations make 3 commands: a line of a rule or key looks like a command of its own": steps(
			add(rule("base", "accept\nadd table ip evil")), flush(chain("base")),
		),
	} {
		if err := run(t, nft, do); err == nil || err.Error() != "run transaction: "+want {
			t.Errorf("error: %v: want %s", err, want)
		}
	}
	rejected := (*client.RejectedError)(nil)
	if err := run(t, nft, add(rule("base", "tcp dport frob"))); !errors.As(err, &rejected) {
		t.Errorf("error: %v: want the aggregator's violations", err)
	}
	if err := nft.Run(aggregatortest.Context(t), nil); err == nil {
		t.Error("no transaction: no error")
	}
	tx := knftables.NewFake(knftables.IPv6Family, "other").NewTransaction()
	add(table())(tx)
	if err := nft.Run(aggregatortest.Context(t), tx); err == nil || !strings.Contains(err.Error(), "the adapter is for table ip shared") {
		t.Errorf("transaction of another adapter: %v", err)
	}
}

// TestCostFollowsTheChange counts weft's work for small transactions.
func TestCostFollowsTheChange(t *testing.T) {
	nft, k := shared(t)
	must(t, nft, func(tx *knftables.Transaction) {
		for i := range 5000 {
			tx.Add(member("hosts", fmt.Sprintf("10.9.%d.%d", i/250, i%250)))
		}
	})
	for name, c := range map[string]struct {
		ops int
		do  step
	}{
		"an element":            {1, add(member("hosts", "10.8.0.1"))},
		"an element that is":    {0, add(member("hosts", "10.9.1.1"))},
		"a rule":                {1, add(rule("plain", "accept"))},
		"a chain":               {1, add(chain("more"))},
		"the same rules again":  {0, steps(flush(chain("base")), baseRules)},
		"what is there already": {0, add(table(), chain("plain"))},
	} {
		before := len(k.Commits())
		must(t, nft, c.do)
		if ops := slices.Concat(k.Commits()[before:]...); len(ops) != c.ops {
			t.Errorf("%s: %d operations on the kernel: want %d: %v", name, len(ops), c.ops, ops)
		}
	}
}

// TestManyTables: a transaction over several tables is one commit.
func TestManyTables(t *testing.T) {
	d, k := startFake(t)
	ctx := aggregatortest.Context(t)
	nft := newAdapter(t, d.Dial(t, "agent"), knft.Config{})
	in := func(f knftables.Family, text string) step {
		return add(&knftables.Rule{Family: f, Table: "both", Chain: "c", Rule: text})
	}
	whole := func(f knftables.Family) step {
		table, chain := &knftables.Table{Family: f, Name: "both"}, &knftables.Chain{Family: f, Table: "both", Name: "c"}
		return steps(add(table, chain), in(f, "tcp dport 80 accept"))
	}
	must(t, nft, whole(knftables.IPv4Family), whole(knftables.IPv6Family))
	equal(t, "commits", len(k.Commits()), 1)
	if err := run(t, nft, in("ip", "accept"), in("ip6", "jump none")); !knftables.IsNotFound(err) {
		t.Errorf("error: %v", err)
	}
	if err := run(t, nft, add(table())); err == nil || !strings.Contains(err.Error(), "must specify family and table") {
		t.Errorf("object without table: %v", err)
	}
	for name, err := range map[string]error{
		"ListAll":      second(nft.ListAll(ctx)),
		"List":         second(nft.List(ctx, "chains")),
		"ListRules":    second(nft.ListRules(ctx, "c")),
		"ListElements": second(nft.ListElements(ctx, "set", "s")),
		"ListCounters": second(nft.ListCounters(ctx)),
	} {
		if err == nil || !strings.Contains(err.Error(), "no family and table") {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, nft, remove(&knftables.Table{Family: "ip6", Name: "both"}))
	if got, want := k.String(), "table ip both\n  chain c\n    tcp dport 80 accept\n"; got != want {
		t.Errorf("left:\n%s\nwant\n%s", got, want)
	}
}

func second[T any](_ T, err error) error { return err }

// TestConfig has invalid configurations, and default names.
func TestConfig(t *testing.T) {
	d, _ := startFake(t)
	c := d.Dial(t, "agent")
	for _, cfg := range []knft.Config{{Family: "ip"}, {Table: "t"}, {Family: "ipx", Table: "t"}} {
		if a, err := knft.New(c, cfg); err == nil {
			t.Errorf("%+v: no error", cfg)
			_ = a.Close()
		}
	}
	for table, want := range map[string]string{
		"kube-proxy":               "ip-kube-proxy",
		"Upper":                    "ip-upper-ada6d7a6",
		strings.Repeat("long", 30): "",
	} {
		nft := newAdapter(t, c, knft.Config{Family: "ip", Table: table})
		must(t, nft, add(&knftables.Table{}))
		list, err := c.List(aggregatortest.Context(t))
		if err != nil || len(list.GetFragments()) != 1 {
			t.Fatalf("%d fragments, %v", len(list.GetFragments()), err)
		}
		if name := list.GetFragments()[0].GetFragment().GetName(); want != "" && name != want {
			t.Errorf("table %s: fragment %s: want %s", table, name, want)
		}
		must(t, nft, noTable)
	}
}

func TestConcurrentTransactions(t *testing.T) {
	nft, k := shared(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 10 {
				try(t, nft, create(member("hosts", fmt.Sprintf("10.1.%d.%d", i, j))))
				if _, err := nft.ListElements(aggregatortest.Context(t), "set", "hosts"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	equal(t, "elements", len(k.Elements(sharedTable, "hosts")), 82)
}

// TestCancelled: after a cancelled wait, the next transaction waits for the outcome and builds on it.
func TestCancelled(t *testing.T) {
	nft, k := shared(t)
	ctx, cancel := context.WithCancel(aggregatortest.Context(t))
	cancel()
	for i := range 20 {
		tx := nft.NewTransaction()
		create(member("hosts", fmt.Sprintf("10.2.0.%d", i)))(tx)
		if i%2 == 1 {
			add(rule("plain", "tcp dport frob"))(tx)
		}
		if err := nft.Run(ctx, tx); err != nil && !errors.Is(err, context.Canceled) && i%2 == 0 {
			t.Errorf("transaction %d: %v", i, err)
		}
	}
	must(t, nft, create(member("hosts", "10.3.0.1")))
	elements, err := nft.ListElements(aggregatortest.Context(t), "set", "hosts")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "elements in the kernel", len(k.Elements(sharedTable, "hosts")), len(elements))
	// The rejected creation was reverted, so creating again is not an error.
	must(t, nft, create(member("hosts", "10.2.0.1")))
}

// TestDestroy has operations that nft 1.0.6 lacks and EmulateDestroy does not allow.
func TestDestroy(t *testing.T) {
	d, k := startFake(t)
	nft := newAdapter(t, d.Dial(t, "agent"), sharedConfig)
	must(t, nft, destroy(table()))
	must(t, nft, scenery)
	must(t, nft, destroy(
		(&scene{t: t, nft: nft}).rule("base", "one"),
		&knftables.Rule{Chain: "base", Handle: ptr(99999)},
		set("nets", ""), set("nets", ""),
		member("hosts", "10.0.0.1"),
		&knftables.Element{Map: "ports", Key: []string{"10.0.0.1"}},
		&knftables.Element{Map: "ports", Key: []string{"10.0.0.77"}},
		chain("empty"), chain("empty"),
	))
	want := `table ip shared
  chain base
    ip saddr . ip protocol . th dport vmap @verdicts
    jump plain
  chain plain
    return
  set hosts
    10.0.0.2
  set ports
  set verdicts
    10.0.0.1 . tcp . 80 : goto plain
`
	equal(t, "left", k.String(), want)
	if err := run(t, nft, destroy(member("none", "10.0.0.1"))); !knftables.IsNotFound(err) {
		t.Errorf("destroy of an element without its set: %v", err)
	}
	must(t, nft, destroy(table(), table()))
	equal(t, "left", k.String(), "")
}
