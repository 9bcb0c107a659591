package cost_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/cost"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// wide is element i of a set of three fields that each are divided into many rules.
func wide(i int) string {
	return fmt.Sprintf("%d.%d.0.1-%d.%d.255.254 . 1.0.0.1-9.255.255.254 . 1-65534", 1+i>>8, i&255, 1+i>>8, i&255)
}

// exact is element i of a set of three fields of which one is a range.
func exact(i int) string { return fmt.Sprintf("10.%d.%d.%d . tcp . 1001-4007", i>>16, i>>8&255, i&255) }

// BenchmarkTransaction prints the measured and the predicted time of transactions.
func BenchmarkTransaction(b *testing.B) {
	nfttest.Require(b, nfttest.Namespaces)
	id := nft.TableID{Family: nft.FamilyIP, Name: "x"}
	for _, tt := range []struct {
		typ, flags string
		sizes      []int
		element    func(i int) string
	}{
		{"ipv4_addr", "", []int{1000, 50_000}, func(i int) string { return fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255) }},
		{"inet_service", "", []int{1000, 8000}, func(i int) string { return fmt.Sprint(i) }},
		{"ipv4_addr", "interval", []int{1000, 40_000}, func(i int) string { return fmt.Sprintf("10.%d.%d.0-10.%d.%d.9", i>>8, i&255, i>>8, i&255) }},
		{"ipv4_addr . inet_proto . inet_service", "interval", []int{500, 4000, 16_000}, exact},
		{"ipv4_addr . ipv4_addr . inet_service", "interval", []int{250, 2000, 6000}, wide},
	} {
		ns := nfttest.New(b)
		k, err := kernel.Open(kernel.Config{NetNS: ns.FD()})
		if err != nil {
			b.Fatal(err)
		}
		decl := nft.Set{Name: "s", Type: tt.typ}
		if tt.flags != "" {
			decl.Flags = []string{tt.flags}
		}
		d, err := set.Compile(id.Family, &decl)
		if err != nil {
			b.Fatal(err)
		}
		took := func(ops ...kernel.Op) time.Duration {
			stats, err := k.Commit(ops)
			if err != nil {
				b.Fatal(err)
			}
			return stats.Kernel
		}
		pack := func(from, to int) (all []set.Element) {
			for i := from; i < to; i++ {
				e, err := d.Pack(nft.Element{Key: tt.element(i)})
				if err != nil {
					b.Fatal(err)
				}
				all = append(all, e)
			}
			return all
		}
		took(kernel.AddTable{Table: id}, kernel.AddSet{Table: id, Set: d})
		var c cost.Content
		have, gone := 0, 0
		for _, n := range tt.sizes {
			// Nearly all that is missing, then some, which are measured.
			const some = 64
			first, next := pack(have, n-some), pack(n-some, n)
			took(kernel.AddElements{Table: id, Set: d, Elements: first})
			for i := range first {
				c.Add(d, &first[i], 1)
			}
			predicted := c.Change(d)
			for i := range next {
				predicted += c.Addition(d, &next[i])
				c.Add(d, &next[i], 1)
			}
			adding := took(kernel.AddElements{Table: id, Set: d, Elements: next})
			report(b, fmt.Sprintf("add %d to %d %s %s", some, n-some, tt.typ, tt.flags), predicted, func() time.Duration { return adding })
			predicted = c.Change(d) + 2*c.Removal(d)
			// Which end takes longer depends on the ranges.
			old := pack(gone, gone+2)
			removing := max(took(kernel.DeleteElements{Table: id, Set: d, Elements: next[some-2:]}), took(kernel.DeleteElements{Table: id, Set: d, Elements: old}))
			gone += 2
			report(b, fmt.Sprintf("remove 2 of %d %s %s", n, tt.typ, tt.flags), predicted, func() time.Duration { return removing })
			for i := range 2 {
				c.Add(d, &next[some-2+i], -1)
				c.Add(d, &old[i], -1)
			}
			have = n
		}
		if err := k.Close(); err != nil {
			b.Error(err)
		}
	}
}

// BenchmarkSets prints the measured and the predicted time of sets beside others of their table.
func BenchmarkSets(b *testing.B) {
	nfttest.Require(b, nfttest.Namespaces)
	id := nft.TableID{Family: nft.FamilyIP, Name: "x"}
	k, err := kernel.Open(kernel.Config{NetNS: nfttest.New(b).FD()})
	if err != nil {
		b.Fatal(err)
	}
	defer k.Close()
	took := func(ops ...kernel.Op) time.Duration {
		stats, err := k.Commit(ops)
		if err != nil {
			b.Fatal(err)
		}
		return stats.Kernel
	}
	named := func(i int) kernel.Op {
		d, err := set.Compile(id.Family, &nft.Set{Name: fmt.Sprintf("a-set-with-a-name-of-some-length-%d", i), Type: "ipv4_addr"})
		if err != nil {
			b.Fatal(err)
		}
		return kernel.AddSet{Table: id, Set: d}
	}
	rules := func(text string) (all []kernel.Op, r *compile.Rule) {
		r, err := compile.CompileRule(id.Family, nft.Rule{Text: text}, nil)
		if err != nil {
			b.Fatal(err)
		}
		for range 64 {
			all = append(all, kernel.AddRule{Table: id, Chain: "c", Rule: r})
		}
		return all, r
	}
	took(kernel.AddTable{Table: id}, kernel.AddChain{Table: id, Chain: &object.Chain{Name: "c"}})
	have, rows := 0, 0
	for _, n := range []int{1000, 4000, 16_000} {
		var ops []kernel.Op
		for ; have < n; have++ {
			ops = append(ops, named(have))
		}
		took(ops[:len(ops)-64]...)
		adding := took(ops[len(ops)-64:]...)
		report(b, fmt.Sprintf("declare 64 sets beside %d", n), 64*cost.Sets{Named: n, Anonymous: rows}.New(), func() time.Duration { return adding })
		anonymous, r := rules("tcp dport { 80, 443 } accept")
		ruling := took(anonymous...)
		rows += 64
		report(b, fmt.Sprintf("64 rules with an anonymous set beside %d", n), 64*cost.NewRule(r, cost.Sets{Named: n, Anonymous: rows}), func() time.Duration { return ruling })
	}
	for range 2000 / 64 {
		all, _ := rules("tcp dport { 80, 443 } accept")
		took(all...)
		rows += 64
	}
	all, r := rules("tcp dport { 80, 443 } accept")
	ruling := took(all...)
	report(b, fmt.Sprintf("64 rules with an anonymous set beside %d others", rows), 64*cost.NewRule(r, cost.Sets{Named: have, Anonymous: rows}), func() time.Duration { return ruling })
}
