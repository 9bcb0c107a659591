package services

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// BenchmarkCounterMemory has the kernel's memory for an element, in bytes, of sets and maps as
// the data plane has them: the median over the operations. What else the machine does is in it.
func BenchmarkCounterMemory(b *testing.B) {
	nfttest.Require(b, nfttest.Namespaces, nfttest.NFT)
	const elements = 100_000
	const listener, slot = "ip daddr . meta l4proto . th dport", "ip daddr . meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport"
	for _, bb := range []struct{ name, kind, typeof, counter, format string }{
		{"service-connections", "set", listener, "counter;", `10.%d.%d.%d . tcp . 80 comment "default/service-1234:http"`},
		{"slots", "map", slot, "", "10.%d.%d.%d . tcp . 80 . 0 : 10.244.1.1 . 8080"},
		{"counted-slots", "map", slot, "counter;", "10.%d.%d.%d . tcp . 80 . 0 : 10.244.1.1 . 8080"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			var keys strings.Builder
			for i := range elements {
				fmt.Fprintf(&keys, bb.format+", ", i>>16, i>>8&255, i&255)
			}
			rules := fmt.Sprintf("table ip m {\n%s s {\ntypeof %s; %s\nelements = { %s }\n}\n}\n", bb.kind, bb.typeof, bb.counter, keys.String())
			var took []float64
			for b.Loop() {
				ns := nfttest.New(b)
				before := kernelMemory(b)
				ns.Nft(b, rules)
				took = append(took, float64(kernelMemory(b)-before)/elements)
				ns.Nft(b, "flush ruleset")
			}
			b.ReportMetric(median(took), "B/element")
		})
	}
}

// kernelMemory returns the bytes of the kernel's slabs, per processor memory and tables.
func kernelMemory(b *testing.B) (sum int64) {
	b.Helper()
	f, err := os.Open("/proc/meminfo")
	must(b, err)
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var name string
		var kib int64
		if n, _ := fmt.Sscanf(s.Text(), "%s %d", &name, &kib); n == 2 && slices.Contains([]string{"SUnreclaim:", "Percpu:", "VmallocUsed:"}, name) {
			sum += kib << 10
		}
	}
	return sum
}
