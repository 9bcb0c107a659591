package knft_test

import (
	"errors"
	"fmt"
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

// shared starts weft and an adapter, whose table is scenery.
func shared(t *testing.T) (*knft.Adapter, *aggregatortest.Kernel) {
	t.Helper()
	d, k := startFake(t)
	nft := newAdapter(t, d.Dial(t, "agent"), sharedConfig)
	must(t, nft, scenery)
	return nft, k
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
	one, placed := s.rule("base", "one"), s.rule("base", "one")
	placed.Rule = "accept"
	after := func(index int) step { return add(&knftables.Rule{Chain: "base", Rule: "accept", Index: ptr(index)}) }
	before := k.String()
	for _, c := range []struct {
		name string
		do   step
		want func(error) bool
	}{
		{"delete table", remove(table()), isForeign},
		{"create table", create(table()), knftables.IsAlreadyExists},
		{"delete chain", remove(chain("empty")), isForeign},
		{"destroy chain", destroy(chain("empty")), isForeign},
		{"create chain", create(chain("plain")), knftables.IsAlreadyExists},
		{"delete set", remove(set("nets", "")), isForeign},
		{"create set", create(set("hosts", "ipv4_addr")), knftables.IsAlreadyExists},
		{"add set with another type", add(set("hosts", "ipv6_addr")), knftables.IsAlreadyExists},
		{"delete element", remove(member("hosts", "10.0.0.1")), isForeign},
		{"create element", create(member("hosts", "10.0.0.1")), knftables.IsAlreadyExists},
		{"delete rule", remove(one), isForeign},
		{"replace rule", replace(placed), isForeign},
		{"insert before a rule", insert(placed), isForeign},
		{"add after an index", after(1), isForeign},
		{"add after an index that is not there", after(3), knftables.IsNotFound},
		{"delete what no fragment has", remove(chain("none")), knftables.IsNotFound},
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
	must(t, second, flush(table()))
	must(t, second, flush(chain("base")))
	must(t, second, flush(set("hosts", "")))
	if after := k.String(); after != before {
		t.Errorf("flush took away what is another's: before\n%s\nafter\n%s", before, after)
	}
	must(t, first, remove(set("nets", "")))
}

func isForeign(err error) bool { return errors.Is(err, knft.ErrForeign) }

func TestShared(t *testing.T) {
	first, second, k := share(t)
	ctx := aggregatortest.Context(t)
	verdict := pair("verdicts", "goto plain", "10.0.0.9", "tcp", "22")
	must(t, second, add(
		noted("base", "ip ttl 1 drop", "mine"), noted("base", "ip ttl 2 drop", "mine too"), member("hosts", "10.0.0.9"), verdict,
	))
	equal(t, "hosts", k.Elements(sharedTable, "hosts"), []string{"10.0.0.1", "10.0.0.2", "10.0.0.9"})
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
	between := noted("base", "ip ttl 3 drop", "between")
	between.Index = ptr(4)
	must(t, second, insert(between), remove((&scene{t: t, nft: second}).rule("base", "mine")))
	want := []string{"ip saddr @hosts drop", "ip saddr . ip protocol . th dport vmap @verdicts", "jump plain", "ip ttl 3 drop", "ip ttl 2 drop"}
	if got := k.Rules(sharedTable, "base"); !slices.Equal(got, want) {
		t.Errorf("rules:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if err := run(t, first, remove(chain("plain"))); err == nil || knftables.IsNotFound(err) {
		t.Errorf("delete of a chain that another fragment refers to: %v", err)
	}
	must(t, second, remove(verdict))
	must(t, first, noTable)
	equal(t, "rules that are left", k.Rules(sharedTable, "base"), want[3:])
	must(t, second, noTable)
	equal(t, "left", k.String(), "")
}

// TestTwoAdapters has two adapters of one fragment take turns.
func TestTwoAdapters(t *testing.T) {
	d, k := startFake(t)
	c := d.Dial(t, "agent")
	a, b := newAdapter(t, c, sharedConfig), newAdapter(t, c, sharedConfig)
	must(t, a, scenery)
	for i, nft := range []knftables.Interface{b, a, a, b, b, a} {
		must(t, nft, create(member("hosts", fmt.Sprintf("10.0.1.%d", i))))
	}
	if got := len(k.Elements(sharedTable, "hosts")); got != 8 {
		t.Errorf("%d elements: want 8:\n%s", got, k)
	}
}
