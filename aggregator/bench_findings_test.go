package aggregator

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/findings"
)

// BenchmarkFindings looks at 1,000 chains of ten rules each, as of 1,000 policies, beside a set of 100,000
// elements. The part "merged" is on the goroutine that commits.
func BenchmarkFindings(b *testing.B) {
	var text strings.Builder
	text.WriteString("table ip p {\n")
	text.WriteString("chain base { type filter hook forward priority 0; ip saddr vmap @pods; }\nmap pods { type ipv4_addr : verdict; elements = {\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "10.0.%d.%d : jump c%d,\n", i/250, i%250, i)
	}
	text.WriteString("}; }\nset large { type ipv4_addr; elements = {\n")
	for i := range 100_000 {
		fmt.Fprintf(&text, "10.%d.%d.%d,\n", 1+i/62500, i/250%250, i%250)
	}
	text.WriteString("}; }\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "chain c%d {\n", i)
		for j := range 10 {
			fmt.Fprintf(&text, "ip saddr @large tcp dport %d accept\n", 1000+j)
		}
		text.WriteString("}\n")
	}
	text.WriteString("}\ntable ip late { chain c { type filter hook forward priority 10; policy drop; tcp dport 1000-2000 accept; }; }\n")
	state := merge.New()
	adm := admission.NewSnapshot(admission.Config{}, desired.Key{Publisher: "p", Name: "f"}, state.Scope())
	adm.AddFragment(&weftv1.Fragment{Name: "f", Nft: text.String()})
	u, err := adm.Finish()
	if err != nil {
		b.Fatal(err)
	}
	if err := state.Apply(u); err != nil {
		b.Fatal(err)
	}
	planner.Make(state)
	planner.Accept(state)
	var tables []*desired.Merged
	b.Run("merged", func(b *testing.B) {
		for b.Loop() {
			tables = merged(state, desired.DetailElements)
		}
	})
	b.Run("look", func(b *testing.B) {
		i := findings.New(findings.Config{})
		for b.Loop() {
			if _, err := i.Find(tables); err != nil {
				b.Fatal(err)
			}
		}
	})
}
