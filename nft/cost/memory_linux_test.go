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

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/cost"
	"github.com/weft-proxy/weft/nft/ruleset"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// kernelMemory returns what the kernel has allocated for itself, in bytes: slabs, what is
// there for each CPU, and large allocations.
func kernelMemory(t testing.TB) int {
	t.Helper()
	info, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for line := range bytes.Lines(info) {
		f := strings.Fields(string(line))
		switch f[0] {
		case "SUnreclaim:", "Percpu:", "VmallocUsed:":
			n, err := strconv.Atoi(f[1])
			if err != nil {
				t.Fatal(err)
			}
			sum += n << 10
		}
	}
	return sum
}

// tableScope finds the sets of a table for its rules.
type tableScope map[string]*set.Set

func (s tableScope) Set(name string) (*set.Set, bool) { d, ok := s[name]; return d, ok }
func (tableScope) Chain(string) bool                  { return true }
func (tableScope) Object(nft.ObjectKind, string) bool { return true }
func (tableScope) Flowtable(string) bool              { return true }

// estimate returns the estimate of a file.
func estimate(t testing.TB, text string) int {
	t.Helper()
	tables, err := ruleset.Parse("x", text)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, tb := range tables {
		scope := tableScope{}
		for i := range tb.Sets {
			d, err := set.Compile(tb.Family, &tb.Sets[i])
			if err != nil {
				t.Fatal(err)
			}
			scope[d.Name] = d
			var c cost.Content
			for _, e := range tb.Sets[i].Elements {
				packed, err := d.Pack(e)
				if err != nil {
					t.Fatal(err)
				}
				c.Add(d, &packed, 1)
			}
			sum += c.Memory(d)
		}
		for _, c := range tb.Chains {
			sum += cost.Chain(c.Base())
			for _, r := range c.Rules {
				compiled, err := compile.CompileRule(tb.Family, r, scope)
				if err != nil {
					t.Fatal(err)
				}
				sum += cost.Rule(compiled)
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
		got := estimate(t, text) >> 10
		if want := measured[name]; got < want/2 || got > want*2 {
			t.Errorf("%s: estimated are %d KiB, and the kernel allocates %d KiB: want between half and twice as much", name, got, want)
		}
	}
}

// BenchmarkMemory prints the ratio of what the kernel allocates to the estimate, for what
// rulesets have most of. Other programs allocate too, so it is the median of several
// attempts, on an idle machine.
func BenchmarkMemory(b *testing.B) {
	nfttest.Require(b, nfttest.Namespaces, nfttest.NFT)
	for name, text := range rulesets() {
		b.Run(name, func(b *testing.B) {
			want := estimate(b, text)
			var ratios []float64
			for b.Loop() {
				for range 3 {
					ns := nfttest.New(b)
					before := kernelMemory(b)
					ns.Nft(b, text)
					ratios = append(ratios, float64(kernelMemory(b)-before)/float64(want))
				}
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "of-estimate")
			b.ReportMetric(0, "ns/op")
		})
	}
}
