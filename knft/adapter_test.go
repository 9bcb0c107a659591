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
	d, k := startFake(t)
	c := d.Dial(t, "agent")
	nft := newAdapter(t, c, sharedConfig)
	must(t, nft, scenery)
	commits := len(k.Commits())
	rule := func(text string) *knftables.Rule { return &knftables.Rule{Chain: "base", Rule: text} }
	for text, do := range map[string]func(tx *knftables.Transaction){
		"reset counter hits": func(tx *knftables.Transaction) { tx.Reset(&knftables.Counter{Name: "hits"}) },
		"flags dormant": func(tx *knftables.Transaction) {
			tx.Add(&knftables.Table{Flags: []knftables.TableFlag{knftables.DormantFlag}})
		},
		"delete table by handle":  func(tx *knftables.Transaction) { tx.Delete(&knftables.Table{Handle: ptr(1)}) },
		"delete chain by handle":  func(tx *knftables.Transaction) { tx.Delete(&knftables.Chain{Name: "base", Handle: ptr(1)}) },
		"destroy chain by handle": func(tx *knftables.Transaction) { tx.Destroy(&knftables.Chain{Name: "base", Handle: ptr(1)}) },
		"delete set by handle":    func(tx *knftables.Transaction) { tx.Delete(&knftables.Set{Name: "hosts", Handle: ptr(1)}) },
		"delete map by handle": func(tx *knftables.Transaction) {
			tx.Delete(&knftables.Map{Name: "ports", Handle: ptr(1)})
			tx.Add(rule("accept"))
		},
		"delete counter by handle": func(tx *knftables.Transaction) { tx.Delete(&knftables.Counter{Name: "hits", Handle: ptr(1)}) },
		"counter of element 10.0.0": func(tx *knftables.Transaction) {
			tx.Add(&knftables.Element{Set: "hosts", Key: []string{"10.0.0.7 counter"}})
		},
	} {
		t.Run(text, func(t *testing.T) {
			err := run(t, nft, func(tx *knftables.Transaction) {
				tx.Add(&knftables.Chain{Name: "before"})
				do(tx)
			})
			if !errors.Is(err, knft.ErrUnsupported) || !strings.Contains(err.Error(), text) {
				t.Errorf("error: %v: want %q", err, text)
			}
		})
	}
	if n := len(k.Commits()); n != commits {
		t.Errorf("%d commits were made", n-commits)
	}
}

func TestObjects(t *testing.T) {
	d, k := startFake(t)
	nft, other := newAdapter(t, d.Dial(t, "agent"), sharedConfig), newAdapter(t, d.Dial(t, "other"), sharedConfig)
	counter := func(name string) *knftables.Counter {
		return &knftables.Counter{Name: name, Comment: ptr("of " + name), Packets: ptr(uint64(3)), Bytes: ptr(uint64(180))}
	}
	must(t, nft, func(tx *knftables.Transaction) {
		tx.Add(&knftables.Table{})
		tx.Add(counter("hits"))
		tx.Add(&knftables.Flowtable{Name: "fast", Priority: ptr(knftables.FilterIngressPriority), Devices: []string{"eth0", "eth1"}})
		tx.Add(&knftables.Chain{Name: "base"})
		tx.Add(&knftables.Rule{Chain: "base", Rule: `counter name "hits" accept`})
	})
	must(t, nft, func(tx *knftables.Transaction) {
		tx.Add(&knftables.Counter{Name: "hits"})
		tx.Add(counter("more"))
	})
	must(t, other, func(tx *knftables.Transaction) {
		tx.Add(&knftables.Table{})
		tx.Add(counter("theirs"))
	})
	ctx := aggregatortest.Context(t)
	for what, want := range map[string][]string{"counters": {"hits", "more", "theirs"}, "flowtables": {"fast"}} {
		if got, err := nft.List(ctx, what); err != nil || !slices.Equal(got, want) {
			t.Errorf("list %s: %v, %v: want %v", what, got, err, want)
		}
	}
	if _, err := nft.ListCounters(ctx); !errors.Is(err, knft.ErrUnsupported) {
		t.Errorf("list counters: %v", err)
	}
	for name, is := range map[string]func(error) bool{
		"hits":    knftables.IsAlreadyExists,
		"missing": knftables.IsNotFound,
		"theirs":  func(err error) bool { return errors.Is(err, knft.ErrForeign) },
	} {
		if err := run(t, nft, func(tx *knftables.Transaction) {
			if name == "hits" {
				tx.Create(counter(name))
				return
			}
			tx.Delete(&knftables.Counter{Name: name})
		}); !is(err) {
			t.Errorf("counter %s: %v", name, err)
		}
	}
	if err := run(t, nft, func(tx *knftables.Transaction) { tx.Delete(&knftables.Counter{Name: "hits"}) }); err == nil || !strings.Contains(err.Error(), "counter hits") {
		t.Errorf("delete a counter in use: %v", err)
	}
	must(t, nft, func(tx *knftables.Transaction) {
		tx.Flush(&knftables.Chain{Name: "base"})
		tx.Delete(&knftables.Counter{Name: "hits"})
		tx.Destroy(&knftables.Counter{Name: "missing"})
		tx.Delete(&knftables.Flowtable{Name: "fast"})
	})
	if got, err := nft.List(ctx, "counters"); err != nil || !slices.Equal(got, []string{"more", "theirs"}) {
		t.Errorf("counters after deletion: %v, %v in\n%s", got, err, k)
	}
}

// TestErrorsSayWhat compares messages.
func TestErrorsSayWhat(t *testing.T) {
	d, _ := startFake(t)
	nft := newAdapter(t, d.Dial(t, "agent"), sharedConfig)
	must(t, nft, scenery)
	for want, do := range map[string]func(tx *knftables.Transaction){
		"run transaction: delete chain ip shared none: no such chain none in table ip shared": func(tx *knftables.Transaction) {
			tx.Delete(&knftables.Chain{Name: "none"})
		},
		"run transaction: add rule ip shared base: no such set or map none in table ip shared": func(tx *knftables.Transaction) {
			tx.Add(&knftables.Rule{Chain: "base", Rule: "ip saddr @none drop"})
		},
		"run transaction: create element ip shared hosts: element 10.0.0.1 already exists in hosts": func(tx *knftables.Transaction) {
			tx.Create(&knftables.Element{Set: "hosts", Key: []string{"10.0.0.1"}})
		},
		"run transaction: no chain name specified for rule": func(tx *knftables.Transaction) { tx.Add(&knftables.Rule{Rule: "accept"}) },
		"run transaction: 2 operations make 3 commands: a line of a rule or key looks like a command of its own": func(tx *knftables.Transaction) {
			tx.Add(&knftables.Rule{Chain: "base", Rule: "accept\nadd table ip evil"})
			tx.Flush(&knftables.Chain{Name: "base"})
		},
	} {
		if err := run(t, nft, do); err == nil || err.Error() != want {
			t.Errorf("error: %v: want %s", err, want)
		}
	}
	rejected := (*client.RejectedError)(nil)
	if err := run(t, nft, func(tx *knftables.Transaction) { tx.Add(&knftables.Rule{Chain: "base", Rule: "tcp dport frob"}) }); !errors.As(err, &rejected) {
		t.Errorf("error: %v: want the aggregator's violations", err)
	}
	if err := nft.Run(aggregatortest.Context(t), nil); err == nil {
		t.Error("no transaction: no error")
	}
	other := newAdapter(t, d.Dial(t, "agent"), knft.Config{Family: knftables.IPv6Family, Table: "other"})
	tx := other.NewTransaction()
	tx.Add(&knftables.Table{})
	if err := nft.Run(aggregatortest.Context(t), tx); err == nil || !strings.Contains(err.Error(), "the adapter is for table ip shared") {
		t.Errorf("transaction of another adapter: %v", err)
	}
}

// TestCostFollowsTheChange counts weft's work for small transactions.
func TestCostFollowsTheChange(t *testing.T) {
	d, k := startFake(t)
	nft := newAdapter(t, d.Dial(t, "agent"), sharedConfig)
	must(t, nft, func(tx *knftables.Transaction) {
		scenery(tx)
		for i := range 5000 {
			tx.Add(&knftables.Element{Set: "hosts", Key: []string{fmt.Sprintf("10.9.%d.%d", i/250, i%250)}})
		}
	})
	for name, c := range map[string]struct {
		ops int
		do  func(tx *knftables.Transaction)
	}{
		"an element":            {1, func(tx *knftables.Transaction) { tx.Add(&knftables.Element{Set: "hosts", Key: []string{"10.8.0.1"}}) }},
		"an element that is":    {0, func(tx *knftables.Transaction) { tx.Add(&knftables.Element{Set: "hosts", Key: []string{"10.9.1.1"}}) }},
		"a rule":                {1, func(tx *knftables.Transaction) { tx.Add(&knftables.Rule{Chain: "plain", Rule: "accept"}) }},
		"a chain":               {1, func(tx *knftables.Transaction) { tx.Add(&knftables.Chain{Name: "more"}) }},
		"the same rules again":  {0, func(tx *knftables.Transaction) { tx.Flush(&knftables.Chain{Name: "base"}); sameRules(tx) }},
		"what is there already": {0, func(tx *knftables.Transaction) { tx.Add(&knftables.Table{}); tx.Add(&knftables.Chain{Name: "plain"}) }},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(k.Commits())
			must(t, nft, c.do)
			n := 0
			for _, ops := range k.Commits()[before:] {
				n += len(ops)
			}
			if n != c.ops {
				t.Errorf("%d operations on the kernel: want %d: %v", n, c.ops, k.Commits()[before:])
			}
		})
	}
}

func sameRules(tx *knftables.Transaction) {
	tx.Add(&knftables.Rule{Chain: "base", Rule: "ip saddr @hosts drop", Comment: ptr("one")})
	tx.Add(&knftables.Rule{Chain: "base", Rule: "ip saddr . ip protocol . th dport vmap @verdicts", Comment: ptr("two")})
	tx.Add(&knftables.Rule{Chain: "base", Rule: "jump plain", Comment: ptr("three")})
}

// TestManyTables: a transaction over several tables is one commit.
func TestManyTables(t *testing.T) {
	d, k := startFake(t)
	ctx := aggregatortest.Context(t)
	nft := newAdapter(t, d.Dial(t, "agent"), knft.Config{})
	two := func(tx *knftables.Transaction) {
		for _, f := range []knftables.Family{knftables.IPv4Family, knftables.IPv6Family} {
			tx.Add(&knftables.Table{Family: f, Name: "both"})
			tx.Add(&knftables.Chain{Family: f, Table: "both", Name: "c"})
			tx.Add(&knftables.Rule{Family: f, Table: "both", Chain: "c", Rule: "tcp dport 80 accept"})
		}
	}
	must(t, nft, two)
	if n := len(k.Commits()); n != 1 {
		t.Errorf("%d commits: want 1", n)
	}
	err := run(t, nft, func(tx *knftables.Transaction) {
		tx.Add(&knftables.Rule{Family: "ip", Table: "both", Chain: "c", Rule: "accept"})
		tx.Add(&knftables.Rule{Family: "ip6", Table: "both", Chain: "c", Rule: "jump none"})
	})
	if !knftables.IsNotFound(err) {
		t.Errorf("error: %v", err)
	}
	if err := run(t, nft, func(tx *knftables.Transaction) { tx.Add(&knftables.Table{}) }); err == nil || !strings.Contains(err.Error(), "must specify family and table") {
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
	must(t, nft, func(tx *knftables.Transaction) { tx.Delete(&knftables.Table{Family: "ip6", Name: "both"}) })
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
		must(t, nft, func(tx *knftables.Transaction) { tx.Add(&knftables.Table{}) })
		list, err := c.List(aggregatortest.Context(t))
		if err != nil || len(list.GetFragments()) != 1 {
			t.Fatalf("%d fragments, %v", len(list.GetFragments()), err)
		}
		if name := list.GetFragments()[0].GetFragment().GetName(); want != "" && name != want {
			t.Errorf("table %s: fragment %s: want %s", table, name, want)
		}
		removeTable(t, nft)
	}
}

func TestConcurrentTransactions(t *testing.T) {
	d, k := startFake(t)
	nft := newAdapter(t, d.Dial(t, "agent"), sharedConfig)
	must(t, nft, scenery)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 10 {
				if err := run(t, nft, func(tx *knftables.Transaction) {
					tx.Create(&knftables.Element{Set: "hosts", Key: []string{fmt.Sprintf("10.1.%d.%d", i, j)}})
				}); err != nil {
					t.Error(err)
				}
				if _, err := nft.ListElements(aggregatortest.Context(t), "set", "hosts"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(k.Elements(sharedTable, "hosts")); n != 82 {
		t.Errorf("%d elements: want 82", n)
	}
}

// TestCancelled: after a cancelled wait, the next transaction waits for the outcome and builds on it.
func TestCancelled(t *testing.T) {
	d, k := startFake(t)
	nft := newAdapter(t, d.Dial(t, "agent"), sharedConfig)
	must(t, nft, scenery)
	ctx, cancel := context.WithCancel(aggregatortest.Context(t))
	cancel()
	for i := range 20 {
		tx := nft.NewTransaction()
		tx.Create(&knftables.Element{Set: "hosts", Key: []string{fmt.Sprintf("10.2.0.%d", i)}})
		if i%2 == 1 {
			tx.Add(&knftables.Rule{Chain: "plain", Rule: "tcp dport frob"})
		}
		if err := nft.Run(ctx, tx); err != nil && !errors.Is(err, context.Canceled) && i%2 == 0 {
			t.Errorf("transaction %d: %v", i, err)
		}
	}
	must(t, nft, func(tx *knftables.Transaction) {
		tx.Create(&knftables.Element{Set: "hosts", Key: []string{"10.3.0.1"}})
	})
	elements, err := nft.ListElements(aggregatortest.Context(t), "set", "hosts")
	if err != nil {
		t.Fatal(err)
	}
	if got := len(k.Elements(sharedTable, "hosts")); got != len(elements) {
		t.Errorf("%d elements in the kernel, %d listed", got, len(elements))
	}
	// The rejected creation was reverted, so creating again is not an error.
	must(t, nft, func(tx *knftables.Transaction) {
		tx.Create(&knftables.Element{Set: "hosts", Key: []string{"10.2.0.1"}})
	})
}

// TestDestroy has operations that nft 1.0.6 lacks and EmulateDestroy does not allow.
func TestDestroy(t *testing.T) {
	d, k := startFake(t)
	nft := newAdapter(t, d.Dial(t, "agent"), sharedConfig)
	destroy := func(objects ...knftables.Object) func(tx *knftables.Transaction) {
		return func(tx *knftables.Transaction) {
			for _, o := range objects {
				tx.Destroy(o)
			}
		}
	}
	must(t, nft, destroy(&knftables.Table{}))
	must(t, nft, scenery)
	must(t, nft, destroy(
		&knftables.Rule{Chain: "base", Handle: (&scene{t: t, nft: nft}).handle("base", "one")},
		&knftables.Rule{Chain: "base", Handle: ptr(99999)},
		&knftables.Set{Name: "nets"}, &knftables.Set{Name: "nets"},
		&knftables.Element{Set: "hosts", Key: []string{"10.0.0.1"}},
		&knftables.Element{Map: "ports", Key: []string{"10.0.0.1"}},
		&knftables.Element{Map: "ports", Key: []string{"10.0.0.77"}},
		&knftables.Chain{Name: "empty"}, &knftables.Chain{Name: "empty"},
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
	if got := k.String(); got != want {
		t.Errorf("left:\n%s\nwant\n%s", got, want)
	}
	if err := run(t, nft, destroy(&knftables.Element{Set: "none", Key: []string{"10.0.0.1"}})); !knftables.IsNotFound(err) {
		t.Errorf("destroy of an element without its set: %v", err)
	}
	must(t, nft, destroy(&knftables.Table{}, &knftables.Table{}))
	if got := k.String(); got != "" {
		t.Errorf("left:\n%s", got)
	}
}
