package knft_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/knftables"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/knft"
	"github.com/weft-proxy/weft/nft"
)

func startFake(t *testing.T) (*aggregatortest.Daemon, *aggregatortest.Kernel) {
	t.Helper()
	k := &aggregatortest.Kernel{}
	return aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}}), k
}

var sharedConfig = knft.Config{Family: knftables.IPv4Family, Table: "shared"}

var sharedTable = nft.TableID{Family: nft.FamilyIP, Name: "shared"}

func run(t *testing.T, nft knftables.Interface, f func(tx *knftables.Transaction)) error {
	t.Helper()
	tx := nft.NewTransaction()
	f(tx)
	return nft.Run(aggregatortest.Context(t), tx)
}

func must(t *testing.T, nft knftables.Interface, f func(tx *knftables.Transaction)) {
	t.Helper()
	if err := run(t, nft, f); err != nil {
		t.Fatal(err)
	}
}

// share lets a first publisher make a table, and returns the adapter of a second.
func share(t *testing.T) (first, second *knft.Adapter, k *aggregatortest.Kernel) {
	d, k := startFake(t)
	first = newAdapter(t, d.Dial(t, "first"), sharedConfig)
	second = newAdapter(t, d.Dial(t, "second"), sharedConfig)
	must(t, first, scenery)
	return first, second, k
}

// TestForeign tries to change another publisher's objects.
func TestForeign(t *testing.T) {
	first, second, k := share(t)
	s := &scene{t: t, nft: second}
	before := k.String()
	for _, c := range []struct {
		name string
		do   func(tx *knftables.Transaction)
		want func(error) bool
	}{
		{"delete table", func(tx *knftables.Transaction) { tx.Delete(&knftables.Table{}) }, isForeign},
		{"create table", func(tx *knftables.Transaction) { tx.Create(&knftables.Table{}) }, knftables.IsAlreadyExists},
		{"delete chain", func(tx *knftables.Transaction) { tx.Delete(&knftables.Chain{Name: "empty"}) }, isForeign},
		{"destroy chain", func(tx *knftables.Transaction) { tx.Destroy(&knftables.Chain{Name: "empty"}) }, isForeign},
		{"create chain", func(tx *knftables.Transaction) { tx.Create(&knftables.Chain{Name: "plain"}) }, knftables.IsAlreadyExists},
		{"delete set", func(tx *knftables.Transaction) { tx.Delete(&knftables.Set{Name: "nets"}) }, isForeign},
		{"create set", func(tx *knftables.Transaction) { tx.Create(&knftables.Set{Name: "hosts", Type: "ipv4_addr"}) }, knftables.IsAlreadyExists},
		{"add set with another type", func(tx *knftables.Transaction) { tx.Add(&knftables.Set{Name: "hosts", Type: "ipv6_addr"}) }, knftables.IsAlreadyExists},
		{"delete element", func(tx *knftables.Transaction) {
			tx.Delete(&knftables.Element{Set: "hosts", Key: []string{"10.0.0.1"}})
		}, isForeign},
		{"create element", func(tx *knftables.Transaction) {
			tx.Create(&knftables.Element{Set: "hosts", Key: []string{"10.0.0.1"}})
		}, knftables.IsAlreadyExists},
		{"delete rule", func(tx *knftables.Transaction) {
			tx.Delete(&knftables.Rule{Chain: "base", Handle: s.handle("base", "one")})
		}, isForeign},
		{"replace rule", func(tx *knftables.Transaction) {
			tx.Replace(&knftables.Rule{Chain: "base", Rule: "accept", Handle: s.handle("base", "one")})
		}, isForeign},
		{"insert before a rule", func(tx *knftables.Transaction) {
			tx.Insert(&knftables.Rule{Chain: "base", Rule: "accept", Handle: s.handle("base", "one")})
		}, isForeign},
		{"add after an index", func(tx *knftables.Transaction) {
			tx.Add(&knftables.Rule{Chain: "base", Rule: "accept", Index: ptr(1)})
		}, isForeign},
		{"add after an index that is not there", func(tx *knftables.Transaction) {
			tx.Add(&knftables.Rule{Chain: "base", Rule: "accept", Index: ptr(3)})
		}, knftables.IsNotFound},
		{"delete what no fragment has", func(tx *knftables.Transaction) { tx.Delete(&knftables.Chain{Name: "none"}) }, knftables.IsNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := run(t, second, c.do)
			if !c.want(err) {
				t.Fatalf("error: %v", err)
			}
			if isForeign(err) && !strings.Contains(err.Error(), "first/ip-shared") {
				t.Errorf("%v: it does not name the fragment", err)
			}
			if after := k.String(); after != before {
				t.Errorf("the table changed: before\n%s\nafter\n%s", before, after)
			}
		})
	}
	for _, flush := range []knftables.Object{&knftables.Table{}, &knftables.Chain{Name: "base"}, &knftables.Set{Name: "hosts"}} {
		must(t, second, func(tx *knftables.Transaction) { tx.Flush(flush) })
	}
	if after := k.String(); after != before {
		t.Errorf("flush took away what is another's: before\n%s\nafter\n%s", before, after)
	}
	if err := run(t, first, func(tx *knftables.Transaction) { tx.Delete(&knftables.Set{Name: "nets"}) }); err != nil {
		t.Errorf("the owner cannot delete its set: %v", err)
	}
}

func isForeign(err error) bool { return errors.Is(err, knft.ErrForeign) }

func TestShared(t *testing.T) {
	first, second, k := share(t)
	ctx := aggregatortest.Context(t)
	must(t, second, func(tx *knftables.Transaction) {
		tx.Add(&knftables.Rule{Chain: "base", Rule: "ip ttl 1 drop", Comment: ptr("mine")})
		tx.Add(&knftables.Rule{Chain: "base", Rule: "ip ttl 2 drop", Comment: ptr("mine too")})
		tx.Add(&knftables.Element{Set: "hosts", Key: []string{"10.0.0.9"}})
		tx.Add(&knftables.Element{Map: "verdicts", Key: []string{"10.0.0.9", "tcp", "22"}, Value: []string{"goto plain"}})
	})
	if got := k.Elements(sharedTable, "hosts"); !slices.Equal(got, []string{"10.0.0.1", "10.0.0.2", "10.0.0.9"}) {
		t.Errorf("hosts: %v", got)
	}
	for _, nft := range []knftables.Interface{first, second} {
		rules, err := nft.ListRules(ctx, "base")
		if err != nil || len(rules) != 5 {
			t.Errorf("list rules: %d rules, %v: want those of both", len(rules), err)
		}
		elements, err := nft.ListElements(ctx, "set", "hosts")
		if err != nil || len(elements) != 3 {
			t.Errorf("list elements: %d elements, %v: want those of both", len(elements), err)
		}
	}
	s := &scene{t: t, nft: second}
	must(t, second, func(tx *knftables.Transaction) {
		tx.Insert(&knftables.Rule{Chain: "base", Rule: "ip ttl 3 drop", Comment: ptr("between"), Index: ptr(4)})
		tx.Delete(&knftables.Rule{Chain: "base", Handle: s.handle("base", "mine")})
	})
	want := []string{"ip saddr @hosts drop", "ip saddr . ip protocol . th dport vmap @verdicts", "jump plain", "ip ttl 3 drop", "ip ttl 2 drop"}
	if got := k.Rules(sharedTable, "base"); !slices.Equal(got, want) {
		t.Errorf("rules:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if err := run(t, first, func(tx *knftables.Transaction) { tx.Delete(&knftables.Chain{Name: "plain"}) }); err == nil || knftables.IsNotFound(err) {
		t.Errorf("delete of a chain that another fragment refers to: %v", err)
	}
	must(t, second, func(tx *knftables.Transaction) {
		tx.Delete(&knftables.Element{Map: "verdicts", Key: []string{"10.0.0.9", "tcp", "22"}})
	})
	removeTable(t, first)
	if got := k.Rules(sharedTable, "base"); !slices.Equal(got, want[3:]) {
		t.Errorf("rules that are left: %v", got)
	}
	removeTable(t, second)
	if got := k.String(); got != "" {
		t.Errorf("left:\n%s", got)
	}
}

// TestTwoAdapters has two adapters of one fragment take turns.
func TestTwoAdapters(t *testing.T) {
	d, k := startFake(t)
	c := d.Dial(t, "agent")
	a, b := newAdapter(t, c, sharedConfig), newAdapter(t, c, sharedConfig)
	must(t, a, scenery)
	for i, nft := range []knftables.Interface{b, a, a, b, b, a} {
		must(t, nft, func(tx *knftables.Transaction) {
			tx.Create(&knftables.Element{Set: "hosts", Key: []string{"10.0.1." + string(rune('0'+i))}})
		})
	}
	if got := len(k.Elements(sharedTable, "hosts")); got != 8 {
		t.Errorf("%d elements: want 8:\n%s", got, k)
	}
}
