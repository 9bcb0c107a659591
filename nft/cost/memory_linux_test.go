package cost_test

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/cost"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/declared"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// kernelMemory returns what the kernel has allocated for itself, in bytes: slabs, what is
// there for each CPU, and large allocations.
func kernelMemory() int {
	info := nfttest.Must(os.ReadFile("/proc/meminfo"))
	sum := 0
	for line := range bytes.Lines(info) {
		f := strings.Fields(string(line))
		switch f[0] {
		case "SUnreclaim:", "Percpu:", "VmallocUsed:":
			n := nfttest.Must(strconv.Atoi(f[1]))
			sum += n << 10
		}
	}
	return sum
}

// contentOf returns the content of a set.
func contentOf(s declared.Set) *cost.Content {
	var c cost.Content
	for i := range s.Elements {
		c.Add(s.Decl, &s.Elements[i], 1)
	}
	return &c
}

// estimate returns the estimate of a file.
func estimate(text string) int {
	sum := 0
	for _, table := range declared.Parse(text) {
		for _, s := range table.Contents {
			sum += contentOf(s).Memory(s.Decl)
		}
		for _, c := range table.Decl.Chains {
			sum += cost.Chain(c.Base())
			for _, r := range c.Rules {
				sum += cost.Rule(nfttest.Must(compile.CompileRule(table.Decl.Family, r, table)))
			}
		}
	}
	return sum
}

func lines(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i>>16&255, i>>8&255, i&255)
	}
	return b.String()
}

// rulesets have many objects of one kind each.
func rulesets() map[string]string {
	all := map[string]string{
		"declared size": "set s { type ipv4_addr; size 4000000; }",
		"bitmaps":       lines(1000, "set s%d-%d-%d { type inet_service; }\n"),
		"hash":          "set s { type ipv4_addr; elements = { " + lines(150_000, "10.%d.%d.%d, ") + "} }",
		"intervals":     "set s { type ipv4_addr; flags interval; elements = { " + lines(60_000, "10.%d.%d.%d/32, ") + "} }",
		"counters":      "set s { type ipv4_addr; counter; elements = { " + lines(60_000, "10.%d.%d.%d, ") + "} }",
		"ranges":        "set s { type ipv4_addr . inet_service; flags interval; elements = { " + lines(8000, "10.%d.%d.%d . 1001-4007, ") + "} }",
		"rules":         "chain c {\n" + lines(40_000, "ip saddr 10.%d.%d.%d tcp dport 80 counter accept\n") + "}",
		"port sets":     "chain c {\n" + lines(600, "ip saddr 10.%d.%d.%d tcp dport { 80, 443 } accept\n") + "}",
		"chains":        lines(20_000, "chain c%d-%d-%d { }\n"),
	}
	for name, table := range all {
		all[name] = strings.ReplaceAll("table ip x {\n"+table+"\n}\n", "} }\n", "}\n}\n")
	}
	return all
}

// TestEstimates compares the estimates with what Linux 6.18 allocated on two CPUs when
// BenchmarkMemory measured it, in KiB.
func TestEstimates(t *testing.T) {
	measured := map[string]int{
		"declared size": 48_100, "bitmaps": 32_000, "hash": 13_400, "intervals": 9_500, "counters": 9_700,
		"ranges": 4_600, "rules": 17_100, "port sets": 19_500, "chains": 4_700,
	}
	for name, text := range rulesets() {
		if runtime.NumCPU() != 2 && (name == "counters" || name == "rules") {
			// Every CPU has its counters.
			continue
		}
		got := estimate(text) >> 10
		if want := measured[name]; got < want/2 || got > want*2 {
			t.Errorf("%s: estimated are %d KiB, and the kernel allocates %d KiB: want between half and twice as much", name, got, want)
		}
	}
}

// BenchmarkMemory prints the ratio of what the kernel allocates to the estimate, for what
// rulesets have most of. Other programs allocate too, so it is the median of several
// attempts, on an idle machine.
func BenchmarkMemory(b *testing.B) {
	for name, text := range rulesets() {
		b.Run(name, func(b *testing.B) {
			want := estimate(text)
			var ratios []float64
			for b.Loop() {
				for range 3 {
					ns := nfttest.New(b)
					before := kernelMemory()
					ns.Nft(b, text)
					ratios = append(ratios, float64(kernelMemory()-before)/float64(want))
				}
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "of-estimate")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// wide is element i of a set of three fields that each are divided into many rules.
func wide(i int) string {
	return fmt.Sprintf("%d.%d.0.1-%d.%d.255.254 . 1.0.0.1-9.255.255.254 . 1-65534", 1+i>>8, i&255, 1+i>>8, i&255)
}

// exact is element i of a set of three fields of which one is a range.
func exact(i int) string { return fmt.Sprintf("10.%d.%d.%d . tcp . 1001-4007", i>>16, i>>8&255, i&255) }

// BenchmarkTransaction prints the measured and the predicted time of transactions.
func BenchmarkTransaction(b *testing.B) {
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
		k := nfttest.Must(kernel.Open(kernel.Config{NetNS: ns.FD()}))
		decl := nft.Set{Name: "s", Type: tt.typ}
		if tt.flags != "" {
			decl.Flags = []string{tt.flags}
		}
		d := nfttest.Must(set.Compile(id.Family, &decl))
		took := func(ops ...kernel.Op) time.Duration {
			return nfttest.Must(k.Commit(ops)).Kernel
		}
		pack := func(from, to int) (all []set.Element) {
			for i := from; i < to; i++ {
				all = append(all, nfttest.Must(d.Pack(nft.Element{Key: tt.element(i)})))
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
	id := nft.TableID{Family: nft.FamilyIP, Name: "x"}
	k := nfttest.Must(kernel.Open(kernel.Config{NetNS: nfttest.New(b).FD()}))
	defer k.Close()
	took := func(ops ...kernel.Op) time.Duration {
		return nfttest.Must(k.Commit(ops)).Kernel
	}
	named := func(i int) kernel.Op {
		d := nfttest.Must(set.Compile(id.Family, &nft.Set{Name: fmt.Sprintf("a-set-with-a-name-of-some-length-%d", i), Type: "ipv4_addr"}))
		return kernel.AddSet{Table: id, Set: d}
	}
	rules := func(text string) (all []kernel.Op, r *compile.Rule) {
		r = nfttest.Must(compile.CompileRule(id.Family, nft.Rule{Text: text}, nil))
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
